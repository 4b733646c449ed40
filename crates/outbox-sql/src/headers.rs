//! Headers as JSON text: an object of strings, and nothing else.

use outbox_core::Headers;
use outbox_core::text::{MAX_NAME, one_line};
use serde_json::{Map, Value};

use crate::row::Unreadable;

/// The headers as a JSON object; `None` if there is none, which is a null in the column.
pub fn to_json(headers: &Headers) -> Option<String> {
    if headers.is_empty() {
        return None;
    }
    let object: Map<String, Value> =
        headers.iter().map(|(name, value)| (name.to_owned(), Value::from(value))).collect();
    Some(Value::Object(object).to_string())
}

/// Reads a JSON object of strings.
///
/// # Errors
/// [`Unreadable`] if the text is anything else.
pub fn from_json(text: &str) -> Result<Headers, Unreadable> {
    let value: Value =
        serde_json::from_str(text).map_err(|error| Unreadable::new(format!("is no JSON: {error}")))?;
    let Value::Object(object) = value else {
        return Err(Unreadable::new(format!("is {}, not a JSON object", kind_of(&value))));
    };
    object
        .into_iter()
        .map(|(name, value)| match value {
            Value::String(value) => Ok((name, value)),
            other => Err(Unreadable::new(format!(
                "has {} as \"{}\", not a string",
                kind_of(&other),
                one_line(&name, MAX_NAME)
            ))),
        })
        .collect()
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "a JSON null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_come_back_as_written() -> Result<(), Unreadable> {
        let headers: Headers = [("a", "1"), ("quote\"", "line\nbreak"), ("é", "")].into_iter().collect();
        let json = to_json(&headers);
        assert_eq!(from_json(json.as_deref().unwrap_or_default())?, headers);
        assert_eq!(to_json(&Headers::new()), None);
        Ok(())
    }

    #[test]
    fn anything_but_an_object_of_strings_is_unreadable() {
        for hostile in ["[]", "null", "1", "\"text\"", "{\"a\":1}", "{\"a\":{}}", "{\"a\":null}", "{", ""] {
            assert!(from_json(hostile).is_err(), "{hostile}");
        }
    }
}

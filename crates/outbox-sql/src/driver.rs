//! What a store asks of a driver, and what it is answered. The stores are written over this, once for each database;
//! a driver sends what it is given, in its own way.

use std::fmt::Debug;
use std::num::NonZeroU32;
use std::sync::Arc;

use outbox_core::{OutboxMessage, StoreError};

use crate::meaning::Meaning;
use crate::row::{self, Cell, Decoding, Unreadable};

/// Where the sessions of a store come from: a pool.
pub trait Driver: Debug + Clone + Send + Sync + 'static {
    /// A connection that was taken from it.
    type Session: Session;

    /// Takes a connection. Nothing is taken if the future is dropped.
    fn acquire(&self) -> impl Future<Output = Result<Self::Session, Failed<Self>>> + Send;

    /// The most that it has at once.
    fn max_sessions(&self) -> Option<NonZeroU32>;

    /// What an error means, and what to do about it. `table` is for a person to read, `rights` are what the operation
    /// needs on it.
    fn meaning(&self, error: &Failed<Self>, table: &str, rights: &str) -> Meaning;
}

/// What the sessions of a driver fail with.
pub type Failed<D> = <<D as Driver>::Session as Asking>::Error;

/// A connection that can be asked: a session, or one of the application's own.
pub trait Asking: Send {
    /// What it fails with.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Runs a text of several statements without parameters.
    fn run(&mut self, text: &str) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Asks for rows of a few small values.
    fn ask(
        &mut self,
        question: Question<'_>,
    ) -> impl Future<Output = Result<Vec<Answer>, Self::Error>> + Send;

    /// The error of an answer that is not what was asked for.
    fn unreadable(why: Unreadable) -> Self::Error;

    /// Asks for one row; there must be one.
    fn ask_one(
        &mut self,
        question: Question<'_>,
    ) -> impl Future<Output = Result<Answer, Self::Error>> + Send {
        async move {
            let first = self.ask(question).await?.into_iter().next();
            first.ok_or_else(|| Self::unreadable(Unreadable::new("has no row")))
        }
    }
}

/// A connection of a store's own. Dropped, it is closed, and the server rolls back: so it ends with any operation of it
/// that fails, or whose future is dropped.
pub trait Session: Asking + Debug + Sized + 'static {
    /// A message's row, as the driver has it.
    type Row: Send;

    /// Reads messages.
    fn read(
        &mut self,
        question: Question<'_>,
    ) -> impl Future<Output = Result<Vec<Self::Row>, Self::Error>> + Send;

    /// What these rows are.
    ///
    /// # Errors
    /// What the decoding answers.
    fn messages(rows: Vec<Self::Row>, decoding: Decoding<'_>) -> Result<Vec<OutboxMessage>, StoreError>;

    /// Gives the connection back. No transaction may be open on it.
    fn release(self);
}

/// A statement, and what its parameters are bound to.
#[derive(Debug, Clone)]
pub struct Question<'q> {
    /// The statement.
    pub text: Arc<str>,
    /// Its parameters, in order.
    pub binds: &'q [Bind<'q>],
    /// How it is sent, where the driver has the choice.
    pub sending: Sending,
}

/// How a statement is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sending {
    /// Prepared once per connection: it is one of a few.
    Named,
    /// Prepared each time.
    Unnamed,
    /// As it is, in one round trip. It has no parameters.
    Plain,
}

impl<'q> Question<'q> {
    /// One of the few statements of a table.
    pub fn named(text: &Arc<str>, binds: &'q [Bind<'q>]) -> Self {
        Self { text: Arc::clone(text), binds, sending: Sending::Named }
    }

    /// One that is asked seldom.
    pub fn unnamed(text: impl Into<Arc<str>>, binds: &'q [Bind<'q>]) -> Self {
        Self { text: text.into(), binds, sending: Sending::Unnamed }
    }

    /// One without parameters.
    pub fn plain(text: impl Into<Arc<str>>) -> Self {
        Self { text: text.into(), binds: &[], sending: Sending::Plain }
    }
}

/// What a parameter is bound to.
#[derive(Debug, Clone, Copy)]
pub enum Bind<'q> {
    /// No text.
    Null,
    /// A text.
    Text(&'q str),
    /// Bytes.
    Bytes(&'q [u8]),
    /// A 64-bit integer.
    Integer(i64),
    /// An array of texts.
    Texts(&'q [&'q str]),
    /// An array of 64-bit integers.
    Integers(&'q [i64]),
}

/// What a parameter is bound to where there are no arrays: they are JSON.
#[derive(Debug)]
pub enum Flat<'q> {
    /// No text.
    Null,
    /// A text.
    Text(&'q str),
    /// A JSON array, as text.
    Json(String),
    /// Bytes.
    Bytes(&'q [u8]),
    /// A 64-bit integer.
    Integer(i64),
}

impl<'q> Bind<'q> {
    /// Without arrays.
    pub fn flat(self) -> Flat<'q> {
        match self {
            Self::Null => Flat::Null,
            Self::Text(text) => Flat::Text(text),
            Self::Bytes(bytes) => Flat::Bytes(bytes),
            Self::Integer(integer) => Flat::Integer(integer),
            Self::Texts(texts) => Flat::Json(serde_json::Value::from(texts).to_string()),
            Self::Integers(integers) => Flat::Json(serde_json::Value::from(integers).to_string()),
        }
    }
}

/// The values of a row.
#[derive(Debug, Clone, Default)]
pub struct Answer(Vec<Value>);

/// A value of a row, as it was read.
#[derive(Debug, Clone, Default)]
pub enum Value {
    /// None.
    #[default]
    Null,
    /// A boolean.
    Boolean(bool),
    /// An integer.
    Integer(i64),
    /// A floating number.
    Real(f64),
    /// A text.
    Text(String),
    /// Bytes, perhaps of a text.
    Bytes(Vec<u8>),
    /// An array of texts.
    Texts(Vec<String>),
    /// It could not be read.
    Unreadable(Unreadable),
}

impl Answer {
    /// Takes a column's value out, by its place.
    ///
    /// # Errors
    /// [`Unreadable`] if it is no such value.
    pub fn take<T: FromValue>(&mut self, column: usize) -> Cell<T> {
        match self.0.get_mut(column).map(std::mem::take) {
            Some(Value::Unreadable(why)) => Err(why),
            value => T::from_value(value.unwrap_or_default()),
        }
    }
}

impl FromIterator<Value> for Answer {
    fn from_iter<I: IntoIterator<Item = Value>>(values: I) -> Self {
        Self(values.into_iter().collect())
    }
}

/// What can be made of a [`Value`].
pub trait FromValue: Sized {
    /// Makes it.
    ///
    /// # Errors
    /// [`Unreadable`] if the value is another.
    fn from_value(value: Value) -> Cell<Self>;
}

impl<T: FromValue> FromValue for Option<T> {
    fn from_value(value: Value) -> Cell<Self> {
        if matches!(value, Value::Null) { Ok(None) } else { T::from_value(value).map(Some) }
    }
}

macro_rules! from_value {
    ($($of:ty: $variant:ident, $what:literal;)*) => {$(
        impl FromValue for $of {
            fn from_value(value: Value) -> Cell<Self> {
                match value {
                    Value::$variant(value) => Ok(value),
                    Value::Null => Err(Unreadable::NULL),
                    _ => Err(Unreadable::new(concat!("is not ", $what))),
                }
            }
        }
    )*};
}

from_value! {
    bool: Boolean, "a boolean";
    i64: Integer, "an integer";
    f64: Real, "a floating number";
    Vec<u8>: Bytes, "bytes";
    Vec<String>: Texts, "an array of texts";
}

impl FromValue for String {
    fn from_value(value: Value) -> Cell<Self> {
        match value {
            Value::Text(text) => Ok(text),
            Value::Bytes(bytes) => row::text(bytes),
            Value::Null => Err(Unreadable::NULL),
            _ => Err(Unreadable::new("is not a text")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A value is what was asked for, or an error that says what it is not.
    #[test]
    fn a_value_of_another_type_is_never_taken_for_one() {
        let values = [Value::Null, Value::Integer(7), Value::Unreadable(Unreadable::new("is odd"))];
        let mut answer: Answer = values.into_iter().collect();
        assert_eq!(answer.clone().take::<Option<i64>>(0), Ok(None));
        assert_eq!(answer.clone().take::<i64>(0), Err(Unreadable::NULL));
        assert_eq!(answer.clone().take::<i64>(1), Ok(7));
        assert_eq!(answer.take::<String>(1), Err(Unreadable::new("is not a text")));
        assert_eq!(answer.take::<Option<i64>>(2), Err(Unreadable::new("is odd")));
        assert_eq!(answer.take::<bool>(9), Err(Unreadable::NULL));
    }

    #[test]
    fn arrays_are_json_where_there_are_none() {
        assert!(matches!(Bind::Integers(&[1, 2]).flat(), Flat::Json(json) if json == "[1,2]"));
        assert!(matches!(Bind::Texts(&["a\""]).flat(), Flat::Json(json) if json == r#"["a\""]"#));
    }
}

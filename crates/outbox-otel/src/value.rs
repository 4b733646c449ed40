//! Texts from outside as attributes: whole, unless they are longer than anybody wants to keep.

use std::borrow::Cow;

use outbox_core::text::one_line;

/// The text as an attribute's value: as it is, for it is joined with the same value elsewhere; one of more than `max`
/// characters is cut, and says how long it was.
pub(crate) fn value<'t>(text: impl Into<Cow<'t, str>>, max: usize) -> Cow<'t, str> {
    let text = text.into();
    let fits = text.len() <= max || text.chars().nth(max).is_none();
    if fits { text } else { one_line(&text, max).into_owned().into() }
}

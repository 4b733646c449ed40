//! A publisher whose messages may be on their way together and arrive in order all the same.

use std::sync::Arc;

use super::Publisher;

/// A publisher that hands each message to *one ordered connection* when its future is polled for the first time.
///
/// [Pipelined](crate::Publishing::pipelined), the relay polls the future of one message before it
/// asks for the next one's, and does not wait for the first acknowledgement. To declare it is to promise:
///
/// - The first poll of a message's future puts the message on the connection, behind every message whose future
///   was polled before, and ahead of every later one. Not a task that is spawned, nor a connection of a pool.
/// - A message that is *not* on the connection after the first poll (it is full, it is being made anew) is refused;
///   it does not wait and follow later ones, and it does not block the thread until there is room. (Tokio's budget makes
///   none wait here: the relay polls without it.)
///
/// What it cannot promise is what the broker does when it refuses n and has n + 1 already: see
/// `docs/ordering.md`.
pub trait OrderedPublisher: Publisher {}

impl<P: OrderedPublisher + ?Sized> OrderedPublisher for Arc<P> {}

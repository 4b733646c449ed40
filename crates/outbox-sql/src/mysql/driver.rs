//! What only MySQL's drivers are asked.

use crate::driver::{Driver, Question, Session};

/// Where the sessions of a store on MySQL come from.
pub trait MySqlDriver: Driver<Session: MySqlSession> {}

impl<D: Driver<Session: MySqlSession>> MySqlDriver for D {}

/// A session on MySQL.
pub trait MySqlSession: Session {
    /// Changes rows, and answers how many.
    fn change(&mut self, change: Question<'_>) -> impl Future<Output = Result<u64, Self::Error>> + Send;

    /// The number of the server's error; `None` if it is not the server's, or cannot be told.
    fn number(error: &Self::Error) -> Option<u16>;
}

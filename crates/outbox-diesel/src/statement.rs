//! A statement of `outbox-sql`, as a query of Diesel's.

use std::marker::PhantomData;

use diesel::QueryResult;
use diesel::backend::Backend;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::serialize::ToSql;
use diesel::sql_types::HasSqlType;

/// A text with its parameters in it, what they are bound to, and the types `ST` of the row that it answers.
///
/// Unlike [`diesel::sql_query`] it is prepared once per connection: its text is one of a few.
pub(crate) struct Statement<'q, DB: Backend, ST> {
    sql: &'q str,
    binds: Vec<Box<dyn QueryFragment<DB> + Send + 'q>>,
    named: bool,
    answer: PhantomData<fn() -> ST>,
}

impl<'q, DB: Backend, ST> Statement<'q, DB, ST> {
    pub(crate) fn new(sql: &'q str) -> Self {
        Self { sql, binds: Vec::new(), named: true, answer: PhantomData }
    }

    /// One whose text is one of many: prepared each time that it is executed.
    #[cfg(feature = "mysql")]
    pub(crate) fn unnamed(sql: &'q str) -> Self {
        Self { named: false, ..Self::new(sql) }
    }

    /// Binds the next parameter.
    pub(crate) fn bind<T>(mut self, value: impl ToSql<T, DB> + Send + 'q) -> Self
    where
        DB: HasSqlType<T>,
        T: 'q,
    {
        self.binds.push(Box::new(Bind { value, of: PhantomData::<fn() -> T> }));
        self
    }
}

impl<DB: Backend, ST> QueryFragment<DB> for Statement<'_, DB, ST> {
    fn walk_ast<'b>(&'b self, mut pass: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        if !self.named {
            pass.unsafe_to_cache_prepared();
        }
        pass.push_sql(self.sql);
        self.binds.iter().try_for_each(|bind| bind.walk_ast(pass.reborrow()))
    }
}

/// Known by its text, not by its type.
impl<DB: Backend, ST> QueryId for Statement<'_, DB, ST> {
    type QueryId = ();

    const HAS_STATIC_QUERY_ID: bool = false;
}

impl<DB: Backend, ST> Query for Statement<'_, DB, ST> {
    type SqlType = ST;
}

impl<DB: Backend, ST, C> diesel::RunQueryDsl<C> for Statement<'_, DB, ST> {}

/// A value; its parameter is in the text already.
struct Bind<V, T> {
    value: V,
    of: PhantomData<fn() -> T>,
}

impl<DB, V, T> QueryFragment<DB> for Bind<V, T>
where
    DB: Backend + HasSqlType<T>,
    V: ToSql<T, DB>,
{
    fn walk_ast<'b>(&'b self, mut pass: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        pass.push_bind_param_value_only(&self.value)
    }
}

#[cfg(all(feature = "async", any(feature = "postgres", feature = "mysql")))]
mod asynchronous {
    use diesel::QueryResult;
    use diesel::result::Error;
    use diesel_async::methods::{ExecuteDsl, LoadQuery};
    use diesel_async::{AsyncConnectionCore, RunQueryDsl};
    use futures_util::TryFutureExt;
    use futures_util::future::BoxFuture;

    use super::{Backend, Statement};

    // Boxed, so that a future of ours which awaits one is `Send` wherever it is spawned: the compiler cannot prove
    // that of Diesel's own.
    impl<'q, DB: Backend + 'q, ST: 'q> Statement<'q, DB, ST> {
        /// The rows that it answers.
        pub(crate) fn rows<'c, U, C>(self, connection: &'c mut C) -> BoxFuture<'c, QueryResult<Vec<U>>>
        where
            C: AsyncConnectionCore<Backend = DB>,
            U: Send + 'c,
            Self: LoadQuery<'q, C, U> + 'c,
        {
            Box::pin(self.get_results(connection))
        }

        /// How many rows it changes.
        pub(crate) fn changes<'c, C>(self, connection: &'c mut C) -> BoxFuture<'c, QueryResult<usize>>
        where
            C: AsyncConnectionCore<Backend = DB>,
            Self: ExecuteDsl<C, DB> + 'c,
        {
            Box::pin(self.execute(connection))
        }

        /// The first row that it answers; there must be one.
        pub(crate) fn one_row<'c, U, C>(self, connection: &'c mut C) -> BoxFuture<'c, QueryResult<U>>
        where
            C: AsyncConnectionCore<Backend = DB>,
            U: Send + 'c,
            Self: LoadQuery<'q, C, U> + 'c,
        {
            let first = |rows: Vec<U>| std::future::ready(rows.into_iter().next().ok_or(Error::NotFound));
            Box::pin(self.rows(connection).and_then(first))
        }
    }
}

//! What a tiny durable commit costs in this minute: every ratio moves with it.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::bed::Bed;
use super::stats::{median, micros_each};

/// How often it is tried.
const TRIES: usize = 60;

/// The median of a one-row insert with its commit, in microseconds.
pub(super) async fn price(bed: &Bed) -> Result<f64> {
    bed.run("CREATE TABLE IF NOT EXISTS public.tiny (number int)").await?;
    let mut connection = bed.connect().await?;
    let mut tries: Vec<f64> = Vec::with_capacity(TRIES);
    for _ in 0..TRIES {
        let begin = Instant::now();
        sqlx::query("INSERT INTO public.tiny VALUES (1)").execute(&mut connection).await?;
        let took: Duration = begin.elapsed();
        tries.push(micros_each(took, 1));
    }
    Ok(median(&tries))
}

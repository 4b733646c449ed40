//! The demo by sqlx.

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    demo::main(demo::on_sqlx::open).await
}

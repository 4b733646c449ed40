//! Relays of both ORMs and of both pools on one table.

use std::time::Duration;

use outbox_core::{Relay, RelayConfig};
use outbox_sqlx::OutboxTable;
use outbox_suite::mysql::{Database, Driver, STORE};
use outbox_suite::server::{message, tenant};
use outbox_testkit::Recorder;

use crate::on_bb8::OnBb8;
use crate::on_deadpool::OnDeadpool;

/// On our table and on one in camelCase: a relay on sqlx, one on bb8 and one on deadpool publish every message of every
/// tenant once, in order, and never two of a tenant at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn relays_on_sqlx_and_on_diesel_take_turns() {
    let (on_bb8, on_deadpool) =
        (Driver::of::<OnBb8>(module_path!()), Driver::of::<OnDeadpool>(module_path!()));
    for table in [OutboxTable::default(), OutboxTable::prisma("OutboxMessage")] {
        let database = Database::create(on_bb8).await;
        let table = database.make(&table).await;
        let tenants = ["acme", "globex", "initech"];
        for tenant in tenants {
            database.append(&table, &vec![message(tenant, "{}"); 200]).await;
        }
        let description = table.description();
        let options = database.options_of(STORE);
        let recorder = Recorder::new();
        let own = [
            Recorder::around(recorder.clone()),
            Recorder::around(recorder.clone()),
            Recorder::around(recorder.clone()),
        ];
        let config = RelayConfig::builder()
            .discover_tenants()
            .poll_interval(Duration::from_millis(1))
            .initial_batch(4)
            .max_batch(4)
            .build()
            .unwrap();
        let pool = database.pool(STORE, 6);
        let on_sqlx = outbox_sqlx::mysql::MySqlStore::new(pool, description.clone()).unwrap();
        let relays = [
            Relay::builder(on_sqlx, own[0].clone(), config.clone()).build().unwrap(),
            Relay::builder(
                on_bb8.pool(options.clone(), 6).store(description),
                own[1].clone(),
                config.clone(),
            )
            .build()
            .unwrap(),
            Relay::builder(on_deadpool.pool(options, 6).store(description), own[2].clone(), config)
                .build()
                .unwrap(),
        ];
        let handles = relays.map(|relay| relay.start().unwrap());
        let name = description.quoted(outbox_sql::Dialect::MySql);
        let column = &description.columns().published_at;
        database.wait_until(&format!("NOT EXISTS (SELECT 1 FROM {name} WHERE `{column}` IS NULL)")).await;
        for handle in handles {
            handle.stop().await.unwrap();
        }
        recorder.assert_in_order();
        recorder.assert_no_duplicates();
        for name in tenants {
            assert_eq!(recorder.accepted(&tenant(name)).len(), 200);
        }
        for one in own {
            assert!(!one.deliveries().is_empty(), "one of the relays never had a turn");
        }
        database.drop().await;
    }
}

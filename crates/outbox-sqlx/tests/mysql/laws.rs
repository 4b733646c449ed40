//! Every law of the contract, on MySQL or MariaDB.

use outbox_core::Settling;
use outbox_suite::mysql_laws;

use super::driver::OnSqlx;

mysql_laws!(marking, OnSqlx, "mysql", store => store);
mysql_laws!(deleting, OnSqlx, "mysql, deleting", store => store.with_settling(Settling::Delete), "DELETE");

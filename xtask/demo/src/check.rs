//! The check at the end: what the application knows against what the world received.

use std::collections::{BTreeMap, BTreeSet};

use super::journal::Entry;
use super::writer::{Fate, Order};

/// What is known when all is done.
#[derive(Debug)]
pub(super) struct Evidence<'a> {
    pub(super) orders: &'a [Order],
    pub(super) journal: &'a [Entry],
    /// The replica that was killed.
    pub(super) killed: &'a str,
    /// What it had published and not yet marked.
    pub(super) unmarked: &'a BTreeSet<i64>,
    /// How many messages are still unpublished in the database.
    pub(super) pending: usize,
}

/// Everything that is wrong; nothing, if all is well.
pub(super) fn problems(evidence: &Evidence<'_>) -> Vec<String> {
    let mut problems = Vec::new();
    if evidence.unmarked.is_empty() {
        problems.push("the kill proves nothing: there was nothing published and not yet marked".to_owned());
    }
    if evidence.pending > 0 {
        problems.push(format!("{} messages are still unpublished", evidence.pending));
    }
    missing_or_unwanted(evidence, &mut problems);
    out_of_order(evidence, &mut problems);
    duplicates(evidence, &mut problems);
    problems
}

/// Every committed order is there, as it was written, and nothing else is.
fn missing_or_unwanted(evidence: &Evidence<'_>, problems: &mut Vec<String>) {
    let committed = evidence.orders.iter().filter(|order| order.fate != Fate::RolledBack);
    // By subject: a database may issue the id of a rolled-back row again, to a committed one.
    let committed: BTreeMap<_, _> = committed.map(|order| (order.subject(), order)).collect();
    let mut missing: BTreeSet<_> = committed.keys().collect();
    for entry in evidence.journal {
        match committed.get(&entry.subject) {
            None => problems.push(format!("{} was published and never committed", entry.subject)),
            Some(order) if order.id != entry.id || order.tenant != entry.tenant => {
                problems.push(format!("{} was published with another's id or tenant", entry.subject));
            }
            Some(_) => _ = missing.remove(&entry.subject),
        }
    }
    problems.extend(missing.into_iter().map(|subject| format!("{subject} was never published")));
}

/// First publications go up by id within a tenant; an order that committed late may come late.
fn out_of_order(evidence: &Evidence<'_>, problems: &mut Vec<String>) {
    let late = evidence.orders.iter().filter(|order| order.fate == Fate::CommittedLate);
    let late: BTreeSet<_> = late.map(|order| order.id).collect();
    let mut seen = BTreeSet::new();
    let mut last = BTreeMap::new();
    for entry in evidence.journal {
        if !seen.insert(entry.id) || late.contains(&entry.id) {
            continue;
        }
        let before = last.insert(&entry.tenant, entry.id);
        if before.is_some_and(|before| before > entry.id) {
            problems.push(format!("{} came after a later order of {}", entry.subject, entry.tenant));
        }
    }
}

/// A message is published again only because the killed replica could not mark it any more: once, by another.
fn duplicates(evidence: &Evidence<'_>, problems: &mut Vec<String>) {
    let mut publications = BTreeMap::<i64, Vec<&Entry>>::new();
    for entry in evidence.journal {
        publications.entry(entry.id).or_default().push(entry);
    }
    for (id, entries) in publications.iter().filter(|(_, entries)| entries.len() > 1) {
        let explained = entries.len() == 2
            && evidence.unmarked.contains(id)
            && entries[0].replica == evidence.killed
            && entries[1].replica != evidence.killed;
        if !explained {
            let count = entries.len();
            problems.push(format!("{} was published {count} times without a cause", entries[0].subject));
        }
    }
    for id in evidence.unmarked.iter().filter(|id| publications.get(id).is_none_or(|all| all.len() < 2)) {
        problems.push(format!("message {id} was not marked at the kill, and was not published again"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(number: i64, tenant: &'static str, fate: Fate) -> Order {
        Order { number, id: number, tenant, fate }
    }

    fn entry(replica: &str, number: i64, tenant: &str) -> Entry {
        let (replica, tenant) = (replica.to_owned(), tenant.to_owned());
        Entry { replica, id: number, tenant, subject: super::super::writer::subject(number) }
    }

    /// Orders 1, 2, 3 (late), 4 (rolled back) and 5 of acme, 6 of globex; A died after it had published 5.
    fn orders() -> Vec<Order> {
        use Fate::{Committed, CommittedLate, RolledBack};
        let fates = [Committed, Committed, CommittedLate, RolledBack, Committed];
        let acme = (1..).zip(fates).map(|(number, fate)| order(number, "acme", fate));
        acme.chain([order(6, "globex", Committed)]).collect()
    }

    fn good() -> Vec<Entry> {
        let acme = [("A", 1), ("B", 2), ("A", 5), ("B", 5), ("B", 3)];
        let acme = acme.map(|(replica, number)| entry(replica, number, "acme"));
        acme.into_iter().chain([entry("B", 6, "globex")]).collect()
    }

    fn problems_with(journal: &[Entry], unmarked: &[i64], pending: usize) -> Vec<String> {
        let unmarked = unmarked.iter().copied().collect();
        problems(&Evidence { orders: &orders(), journal, killed: "A", unmarked: &unmarked, pending })
    }

    fn problem(change: impl FnOnce(&mut Vec<Entry>)) -> String {
        let mut journal = good();
        change(&mut journal);
        problems_with(&journal, &[5], 0).join("; ")
    }

    /// The check passes where all is well, with a late commit and the kill's duplicate.
    #[test]
    fn passes_where_all_is_well() {
        assert_eq!(problems_with(&good(), &[5], 0), Vec::<String>::new());
    }

    /// The check fails on each thing that it is there for.
    #[test]
    fn fails_on_each_fault() {
        assert!(problem(|all| _ = all.remove(0)).contains("order-1 was never published"));
        assert!(problem(|all| all.push(entry("B", 4, "acme"))).contains("order-4 was published and never"));
        assert!(problem(|all| all[0].tenant = "globex".into()).contains("another's id or tenant"));
        assert!(problem(|all| all.swap(0, 1)).contains("order-1 came after a later order of acme"));
        assert!(problem(|all| all.push(entry("B", 1, "acme"))).contains("order-1 was published 2 times"));
        assert!(problem(|all| all.push(entry("B", 5, "acme"))).contains("order-5 was published 3 times"));
        assert!(problem(|all| all[3].replica = "A".into()).contains("order-5 was published 2 times"));
        assert!(problem(|all| _ = all.remove(3)).contains("message 5 was not marked at the kill"));
    }

    /// A message left over, or a kill that hit nothing, fails too.
    #[test]
    fn fails_where_the_scene_did_not_happen() {
        assert!(problems_with(&good(), &[5], 1)[0].contains("1 messages are still unpublished"));
        assert!(problems_with(&good(), &[], 0)[0].contains("proves nothing"));
    }
}

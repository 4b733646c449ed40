//! The table at the end, and what the check says.

use std::collections::{BTreeMap, BTreeSet};

use super::check::Evidence;
use super::story::Story;
use super::writer::{Fate, TENANTS};

/// Tells what happened to each tenant's orders, who published how many, and whether all is well.
pub(super) fn tell(story: &Story, evidence: &Evidence<'_>, problems: &[String]) {
    story.scene("Summary");
    for line in table(evidence) {
        Story::line(&format!("        {line}"));
    }
    let mut by_replica = BTreeMap::<&str, usize>::new();
    for entry in evidence.journal {
        *by_replica.entry(&entry.replica).or_default() += 1;
    }
    let by_replica: Vec<_> = by_replica
        .into_iter()
        .map(|(name, count)| {
            let killed = if name == evidence.killed { " (killed)" } else { "" };
            format!("{name}{killed} {count}")
        })
        .collect();
    Story::line(&format!("        publications by replica: {}", by_replica.join(", ")));
    Story::line("");
    let seconds = story.seconds();
    let has_late = evidence.orders.iter().any(|order| order.fate == Fate::CommittedLate);
    let late = if has_late { " (but for the late one)" } else { "" };
    if problems.is_empty() {
        let well = story.paint("1;32", "CHECK PASSED");
        Story::line(&format!(
            "        {well} in {seconds:.1} s: every committed order was published, none that was rolled back,\n        \
             in order per tenant{late}, and twice only the {} that the kill left unmarked",
            evidence.unmarked.len(),
        ));
    } else {
        Story::line(&format!("        {}", story.paint("1;31", "CHECK FAILED")));
        for problem in problems {
            Story::line(&format!("        {problem}"));
        }
    }
}

fn table(evidence: &Evidence<'_>) -> Vec<String> {
    let header = ["tenant", "committed", "late", "rolled back", "published", "twice"];
    let mut lines = vec![row(header.map(str::to_owned))];
    for tenant in TENANTS {
        let orders = || evidence.orders.iter().filter(move |order| order.tenant == tenant);
        let with = |fate| orders().filter(|order| order.fate == fate).count();
        let all = evidence.journal.iter().filter(|entry| entry.tenant == tenant);
        let published: Vec<_> = all.map(|entry| entry.id).collect();
        let once = published.iter().collect::<BTreeSet<_>>().len();
        let late = with(Fate::CommittedLate);
        let counts =
            [with(Fate::Committed) + late, late, with(Fate::RolledBack), once, published.len() - once];
        let [committed, late, rolled_back, once, twice] = counts.map(|count| count.to_string());
        lines.push(row([tenant.to_owned(), committed, late, rolled_back, once, twice]));
    }
    lines
}

fn row([tenant, committed, late, rolled_back, published, twice]: [String; 6]) -> String {
    format!("{tenant:<8} {committed:>10} {late:>6} {rolled_back:>12} {published:>10} {twice:>6}")
}

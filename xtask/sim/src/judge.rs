//! Whether every promise is kept, asked at each thing that happens and after each step.

mod news;
mod probes;
mod publish;
mod steps;
mod turn_end;
mod turns;

pub(crate) use publish::subject_name;
pub(crate) use turn_end::End;

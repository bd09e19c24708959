//! What cosched writes: the run record, the series beside it, the events, the job log, charts, and texts for people.
//!
//! Everything here is a pure function of the results of a run, or a writer onto any [`std::io::Write`]. Only two files are
//! opened here: the job log, because a cut-off last line must be removed before appending, and the error output of failed
//! jobs for the summary. `docs/formats.md` describes the formats field by field.

mod attached;
pub mod chart;
#[cfg(test)]
mod docs_tests;
mod events;
mod figures;
mod forecast;
mod holders;
mod info;
mod joblog;
mod json;
mod last_line;
mod live;
mod machine_load;
mod markdown;
mod origin;
mod progress;
mod reason;
mod record;
mod recorder;
mod series;
mod setting;
mod sink;
mod solo;
mod source;
mod summary;
mod table;
#[cfg(test)]
mod testing;
mod text;
mod tidy;
mod timeline;
mod trace;
mod warning;
mod why;

pub use attached::{
    ATTACHED_SCHEMA, AttachedNow, DisturbanceNow, LeftOutNow, SubjectNow, SubjectState,
    attached_text,
};
pub use events::{
    EVENT_SCHEMA, EventContext, EventError, EventPick, EventReader, EventRecord, EventWriter,
    read_event,
};
pub use figures::{Absences, Figures};
pub use info::{JobInfo, JobInfos, RunInfo, SoloTime};
pub use joblog::{
    HEADER as JOBLOG_HEADER, JobLog, JobLogEntry, JobLogError, JobLogWriter, SIMULATED_HOST,
    append_joblog, read_joblog,
};
pub use json::{JsonError, schema_of};
pub use last_line::{MOST_READ, last_line, last_line_of};
pub use live::{
    CpuNow, JobNow, JobState, LeftOut, LiveTotals, OwnUse, QueueRow, ReasonNow, RunFacts, RunLine,
    RunStatus, STATUS_SCHEMA, jobs_text, live_job_table, metrics_text, queue_run_text, queue_text,
    runs_text,
};
pub use machine_load::{MachineLoad, MachineUse, disturbances};
pub use markdown::markdown;
pub use origin::{Origin, origin_doubts};
pub use progress::{
    JobProgress, LeftFrom, LiveProgress, ProgressTracker, ended_line, progress_line,
};
pub use reason::{trigger_text, wait_code, wait_text};
pub use record::{
    EarlierJob, EnergyRecord, ExpectedOfJob, JobRecord, JobTotals, MachineDetails,
    MissingCapability, NoRecord, OverheadRecord, RECORD_SCHEMA, Rebuilt, RunRecord, WarningRecord,
    record, record_of_series,
};
pub use recorder::{FileRecorder, Output, RunNews};
pub use series::{
    CpuMode, KINDS as SERIES_KINDS, SERIES_SCHEMA, SampleRow, SeriesError, SeriesFile,
    SeriesHeader, SeriesReader, SeriesRow, SeriesRowKind, SeriesTask, SeriesWriter, is_of_run,
};
pub use setting::{
    AllocationSetting, JobGiven, ParamSetting, RunInput, RunOptions, RunSetting, SettingFile,
};
pub use sink::LineSink;
pub use solo::{SOLO_SCHEMA, SoloFile, SoloJob};
pub use source::{BackendKind, EnergySource, SoloSource};
pub use summary::{
    SummaryOptions, command_again, headline_text, job_table, metric_name, metric_notes,
    metric_table, metric_value, overview, setting_table, summary,
};
pub use table::{CellTone, Table, TableCell, TableColumn, markdown_text};
pub use text::{
    bytes, clip, clock, count, decimal, escaped, escaped_lines, grouped, is_hidden, seconds,
    visible, visible_bytes, visible_json, visible_lines, wrap,
};
pub use tidy::{
    METRIC_COLUMNS, TableForm, TidyTable, job_columns, job_values, metric_values, sample_columns,
    samples,
};
pub use timeline::{CpuStay, Timeline, TrafficTimeline};
pub use trace::{TraceDone, TraceError, is_trace, write_trace};
pub use warning::{OrphansDone, RunFile, RunWarning, shortfall_text};
pub use why::{
    LatestTurn, PreferredJob, SeriesEnd, WHY_SCHEMA, WhyAnswer, WhyChange, WhyState, WhyStep, why,
    why_text,
};

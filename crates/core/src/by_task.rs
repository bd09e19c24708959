//! Values of the tasks that a run still needs.

use crate::task::TaskId;
use std::collections::BTreeMap;
use std::ops::{Index, IndexMut};

/// A value for each task, until the task is forgotten. Indexing by a forgotten task is an error of the program.
#[derive(Clone, Debug)]
pub struct ByTask<T>(BTreeMap<TaskId, T>);

impl<T> Default for ByTask<T> {
    fn default() -> ByTask<T> {
        ByTask(BTreeMap::new())
    }
}

impl<T> ByTask<T> {
    /// Sets the value of a task.
    pub fn insert(&mut self, task: TaskId, value: T) {
        self.0.insert(task, value);
    }

    /// Forgets a task, and returns its value.
    pub fn remove(&mut self, task: TaskId) -> Option<T> {
        self.0.remove(&task)
    }

    /// The value of a task; `None` if the task is unknown or forgotten.
    pub fn get(&self, task: TaskId) -> Option<&T> {
        self.0.get(&task)
    }

    /// As [`ByTask::get`].
    pub fn get_mut(&mut self, task: TaskId) -> Option<&mut T> {
        self.0.get_mut(&task)
    }

    /// The number of tasks that are not forgotten.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The values in the order of the tasks.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.0.values()
    }

    /// As [`ByTask::values`].
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.values_mut()
    }
}

impl<T> Index<TaskId> for ByTask<T> {
    type Output = T;

    fn index(&self, task: TaskId) -> &T {
        &self.0[&task]
    }
}

impl<T> IndexMut<TaskId> for ByTask<T> {
    fn index_mut(&mut self, task: TaskId) -> &mut T {
        self.0.get_mut(&task).expect("a task that is not forgotten")
    }
}

impl<T> FromIterator<(TaskId, T)> for ByTask<T> {
    fn from_iter<I: IntoIterator<Item = (TaskId, T)>>(values: I) -> ByTask<T> {
        ByTask(values.into_iter().collect())
    }
}

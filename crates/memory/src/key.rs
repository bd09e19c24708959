//! Which command it was.

use sha2::{Digest as _, Sha256};
use std::rc::Rc;

/// Tells a command from all others. All parts are text for people as well; only `given` is not kept.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CommandKey {
    /// The kind of machine: times are those of machines of one kind.
    pub machine: Rc<str>,
    /// What the command runs, without its arguments: the path of the program, and of the script for an interpreter.
    pub program: Rc<str>,
    /// The command as one line, as it was executed. Empty: any command with this program, for runs that are too short to
    /// be kept one by one.
    pub command: String,
    /// The folder in which it ran.
    pub folder: Rc<str>,
    /// What else it was given, in a form that differs if anything in it does; no secrets.
    pub given: Rc<str>,
    /// Tells the program's files from those of another version: paths, sizes and times of change.
    pub identity: Rc<str>,
}

/// The numbers by which a command is found: the first 64 bits of SHA-256. Should two ever be equal, one command is taken
/// for the other, and a memory may be wrong in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Numbers {
    /// All of the key.
    pub(crate) exact: i64,
    /// The command on this kind of machine.
    pub(crate) line: i64,
    /// The program on this kind of machine.
    pub(crate) program: i64,
}

impl CommandKey {
    /// The key for all commands of its program that are too short to be kept one by one.
    pub fn of_program(&self) -> CommandKey {
        let none: Rc<str> = "".into();
        CommandKey {
            command: String::new(),
            folder: none.clone(),
            given: none.clone(),
            identity: none,
            ..self.clone()
        }
    }

    /// The number of a program on this kind of machine: shorter than its name, and it does not show a program that the user
    /// forgot.
    pub fn number_of(&self, program: &str) -> i64 {
        number(&["program", &self.machine, program])
    }

    pub(crate) fn numbers(&self) -> Numbers {
        let CommandKey {
            machine,
            program,
            command,
            folder,
            given,
            identity,
        } = self;
        Numbers {
            exact: number(&["exact", machine, program, command, folder, given, identity]),
            line: number(&["line", machine, command]),
            program: number(&["program", machine, program]),
        }
    }
}

fn number(parts: &[&str]) -> i64 {
    let mut hash = Sha256::new();
    for part in parts {
        // With its length, no part can be taken for two.
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    let mut first = [0; 8];
    first.copy_from_slice(&hash.finalize()[..8]);
    i64::from_le_bytes(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_tells_commands_apart() {
        let part = |text: &str| -> Rc<str> { text.into() };
        let key = CommandKey {
            machine: part("m"),
            program: part("p"),
            command: "c".to_owned(),
            folder: part("f"),
            given: part("g"),
            identity: part("i"),
        };
        let Numbers {
            exact,
            line,
            program,
        } = key.numbers();
        let others = [
            CommandKey {
                machine: part("x"),
                ..key.clone()
            },
            CommandKey {
                program: part("x"),
                ..key.clone()
            },
            CommandKey {
                command: "x".to_owned(),
                ..key.clone()
            },
            CommandKey {
                folder: part("x"),
                ..key.clone()
            },
            CommandKey {
                given: part("x"),
                ..key.clone()
            },
            CommandKey {
                identity: part("x"),
                ..key.clone()
            },
        ];
        assert!(others.iter().all(|other| other.numbers().exact != exact));
        let same_line: Vec<bool> = others
            .iter()
            .map(|other| other.numbers().line == line)
            .collect();
        assert_eq!(same_line, [false, true, false, true, true, true]);
        let same_program: Vec<bool> = others
            .iter()
            .map(|other| other.numbers().program == program)
            .collect();
        assert_eq!(same_program, [false, false, true, true, true, true]);
        let moved = CommandKey {
            folder: part("fg"),
            given: part(""),
            ..key.clone()
        };
        assert_ne!(moved.numbers().exact, exact);
    }
}

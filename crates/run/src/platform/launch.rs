//! Which nodes a run uses, and the command that leads to a worker on each.

use crate::exit::{incapable, usage};
use crate::input::quote;
use anyhow::Result;
use cosched_linux::slurm_hosts;
use cosched_nodes::Launch;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::str::FromStr;

/// Which nodes a run uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Nodes {
    /// Those of the Slurm allocation.
    Slurm,
    /// These hosts, by ssh.
    Ssh(Vec<String>),
    /// So many workers on this machine, to try it out.
    Local(usize),
}

/// The greatest number of workers on this machine.
const MOST_LOCAL: usize = 64;

impl FromStr for Nodes {
    type Err = String;

    fn from_str(text: &str) -> Result<Nodes, String> {
        const EXPECTED: &str =
            "expected slurm, ssh:HOST,HOST or local:2; `cosched slurm -N 2` asks for two nodes";
        match text.split_once(':') {
            None if text == "slurm" => Ok(Nodes::Slurm),
            Some(("ssh", hosts)) => Ok(Nodes::Ssh(hosts_of(hosts)?)),
            Some(("local", count)) => match count.parse() {
                Ok(count) if (1..=MOST_LOCAL).contains(&count) => Ok(Nodes::Local(count)),
                _ => Err(format!("expected 1 to {MOST_LOCAL} workers, as in local:2")),
            },
            _ => Err(EXPECTED.to_owned()),
        }
    }
}

fn hosts_of(text: &str) -> Result<Vec<String>, String> {
    let mut hosts: Vec<String> = Vec::new();
    for host in text.split(',') {
        // A host is the name of a folder, and ssh takes a leading `-` for an option.
        if host.is_empty() || host.starts_with(['-', '.']) || host.contains(['/', '\0']) {
            return Err(format!("`{host}` is no host; as in ssh:node1,user@node2"));
        }
        if hosts.iter().any(|known| known == host) {
            return Err(format!("{host} is given twice"));
        }
        hosts.push(host.to_owned());
    }
    Ok(hosts)
}

/// The command for each node. `options` are those of the worker's run.
///
/// # Errors
/// There is no allocation, or Slurm does not say which nodes it has.
pub(crate) fn launches(nodes: &Nodes, options: &[OsString]) -> Result<Vec<Launch>> {
    match nodes {
        Nodes::Slurm => slurm(options),
        Nodes::Ssh(hosts) => Ok(hosts.iter().map(|host| ssh(host, options)).collect()),
        Nodes::Local(count) => (1..=*count)
            .map(|number| local(&format!("local{number}"), options))
            .collect(),
    }
}

/// The worker, with this program's own path.
fn worker(options: &[OsString]) -> Result<Vec<OsString>> {
    let mut words = vec![std::env::current_exe()?.into_os_string()];
    words.extend(["worker", "--"].map(Into::into));
    words.extend_from_slice(options);
    Ok(words)
}

fn local(node: &str, options: &[OsString]) -> Result<Launch> {
    Ok(Launch {
        node: node.to_owned(),
        words: worker(&with_all_cpus(options))?,
    })
}

/// The options of one of several workers on this machine. Each is to be as large as all of it.
fn with_all_cpus(options: &[OsString]) -> Vec<OsString> {
    let mut options = options.to_vec();
    if !options
        .iter()
        .any(|word| word.as_bytes().starts_with(b"--cpus="))
    {
        options.push("--cpus=all".into());
    }
    options
}

/// ssh ends a connection on which nothing is heard for this many seconds, twice.
const SSH: [&str; 7] = [
    "ssh",
    "-T",
    "-o",
    "BatchMode=yes",
    "-o",
    "ServerAliveInterval=5",
    "-oServerAliveCountMax=2",
];

/// The worker on another host, where `cosched` is found in PATH. ssh gives its words to a shell there.
fn ssh(host: &str, options: &[OsString]) -> Launch {
    let mut words: Vec<OsString> = SSH.map(Into::into).to_vec();
    let quoted: Vec<String> = options.iter().map(|word| quote(word.as_bytes())).collect();
    let line = format!("exec cosched worker -- {}", quoted.join(" "));
    words.extend([host.into(), "--".into(), line.into()]);
    Launch {
        node: host.to_owned(),
        words,
    }
}

/// Options of srun for one task that uses all that the allocation has of a node, beside other steps.
///
/// A worker is alone on its node, whatever the tasks of the allocation are.
const SRUN: [&str; 11] = [
    "env",
    "-u",
    "SLURM_CPUS_PER_TASK",
    "srun",
    "-Q",
    "-N1",
    "-n1",
    "--overlap",
    "--no-kill",
    "--mem=0",
    "--cpu-bind=none",
];

fn slurm(options: &[OsString]) -> Result<Vec<Launch>> {
    let worker = worker(options)?;
    let mut all = Vec::new();
    for node in slurm_nodes()? {
        let mut words: Vec<OsString> = SRUN.map(Into::into).to_vec();
        words.extend(["-w".into(), OsString::from(&node)]);
        words.extend_from_slice(&worker);
        all.push(Launch { node, words });
    }
    Ok(all)
}

/// The nodes of the allocation.
fn slurm_nodes() -> Result<Vec<String>> {
    let Ok(list) = std::env::var("SLURM_JOB_NODELIST") else {
        return Err(usage(
            "--nodes slurm: there is no Slurm allocation here; start it with `cosched slurm`, sbatch or salloc",
        ));
    };
    slurm_hosts(&list).map_err(|why| {
        incapable(format!(
            "--nodes slurm: scontrol does not say which nodes these are: {why}"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_named() {
        assert_eq!("slurm".parse(), Ok(Nodes::Slurm));
        assert_eq!("local:3".parse(), Ok(Nodes::Local(3)));
        let hosts = ["a", "user@b"].map(str::to_owned).to_vec();
        assert_eq!("ssh:a,user@b".parse(), Ok(Nodes::Ssh(hosts)));
        for (text, why) in [
            ("ssh", "expected slurm"),
            ("ssh:", "`` is no host"),
            ("ssh:-oProxyCommand=x", "is no host"),
            ("ssh:../a", "is no host"),
            ("ssh:a,a", "a is given twice"),
            ("local:0", "expected 1 to 64"),
            ("k8s:x", "expected slurm"),
        ] {
            let error = text.parse::<Nodes>().unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn a_remote_shell_gets_each_word_whole() {
        let launch = ssh("a", &["--policy".into(), "a b;c".into()]);
        let line = launch.words.last().unwrap();
        assert_eq!(line, "exec cosched worker -- --policy 'a b;c'");
    }
}

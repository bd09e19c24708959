//! The papers whose policies are built in.

/// A paper.
#[derive(Clone, Copy, Debug)]
pub struct Paper {
    /// Its key in BibTeX.
    pub key: &'static str,
    /// Its authors, as in BibTeX.
    pub authors: &'static str,
    /// Its title.
    pub title: &'static str,
    /// Its journal, or the proceedings.
    pub venue: &'static str,
    /// Whether the venue is a journal.
    pub is_article: bool,
    /// The year.
    pub year: u16,
    /// The policies that it describes.
    pub policies: &'static [&'static str],
}

/// Every paper, as in `CITATION.cff`.
pub const PAPERS: &[Paper] = &[
    Paper {
        key: "feliu2014bandwidth",
        authors: "Feliu, Josué and Sahuquillo, Julio and Petit, Salvador and Duato, José",
        title: "Addressing Bandwidth Contention in SMT Multicores Through Scheduling",
        venue: "Proceedings of the 28th ACM International Conference on Supercomputing (ICS)",
        is_article: false,
        year: 2014,
        policies: &["bandwidth"],
    },
    Paper {
        key: "feliu2017perffair",
        authors: "Feliu, Josué and Sahuquillo, Julio and Petit, Salvador and Duato, José",
        title: "Perf&Fair: A Progress-Aware Scheduler to Enhance Performance and Fairness in SMT Multicores",
        venue: "IEEE Transactions on Computers",
        is_article: true,
        year: 2017,
        policies: &["bandwidth", "fair", "perf-fair", "oracle"],
    },
    Paper {
        key: "morad2016efs",
        authors: "Morad, Tomer Y. and Shalev, Noam and Keidar, Idit and Kolodny, Avinoam and Weiser, Uri C.",
        title: "EFS: Energy-Friendly Scheduler for memory bandwidth constrained systems",
        venue: "Journal of Parallel and Distributed Computing",
        is_article: true,
        year: 2016,
        policies: &["efs"],
    },
    Paper {
        key: "petrucci2012lucky",
        authors: "Petrucci, Vinicius and Loques, Orlando and Mossé, Daniel",
        title: "Lucky Scheduling for Energy-Efficient Heterogeneous Multi-Core Systems",
        venue: "Workshop on Power-Aware Computing and Systems (HotPower)",
        is_article: false,
        year: 2012,
        policies: &["bias", "big-fair", "lucky"],
    },
];

impl Paper {
    /// The entry for a BibTeX file.
    pub fn bibtex(&self) -> String {
        let (kind, venue) = if self.is_article {
            ("article", "journal")
        } else {
            ("inproceedings", "booktitle")
        };
        let title = self.title.replace('&', "\\&");
        format!(
            "@{kind}{{{},\n  author = {{{}}},\n  title = {{{title}}},\n  {venue} = {{{}}},\n  year = {{{}}}\n}}\n",
            self.key, self.authors, self.venue, self.year
        )
    }
}

//! The page of a run: `cosched report RUN --html`.

use crate::common::{cosched, err, out, read, write};

#[test]
fn a_thousand_jobs_fit_a_small_page_that_begins_with_the_failed_one() {
    let folder = tempfile::tempdir().unwrap();
    let list = "true\n".repeat(999) + "exit 3\n";
    write(&folder, "commands.txt", &list);
    let words = ["run", "-f", "commands.txt", "--logs", "a#1", "--quiet"];
    let run = cosched(&folder, &words);
    assert_eq!(run.status.code(), Some(1), "{}", err(&run));
    let report = cosched(&folder, &["report", "a#1", "--html", "page.html"]);
    assert_eq!(
        (out(&report), err(&report), report.status.code()),
        (String::new(), String::new(), Some(0))
    );
    let page = read(&folder, "page.html");
    assert!(page.len() < 500_000, "{} bytes", page.len());
    // Every job with its duration, the failed one first.
    let (_, jobs) = page.split_once("<h2 id=\"jobs\">").unwrap();
    let (jobs, _) = jobs.split_once("</section>").unwrap();
    assert_eq!(jobs.matches("<tr>").count(), 1 + 1_000);
    assert!(jobs.contains(
        "<th scope=\"col\">job</th><th scope=\"col\" class=\"n\">time</th><th scope=\"col\">ended</th>"
    ));
    let rows: Vec<&str> = jobs.split("<tr>").skip(2).collect();
    assert!(
        rows[0].starts_with("<td>exit")
            && rows[0].contains("<td><span class=\"bad\">failed: exit 3</span></td>"),
        "{}",
        rows[0]
    );
    assert_eq!(jobs.matches("failed: ").count(), 1);
    // The timeline names jobs, and no section is empty.
    assert!(page.contains("<title>true"));
    for section in page.split("<section ").skip(1) {
        let (_, body) = section.split_once("</h2>\n").unwrap();
        assert!(!body.starts_with("</section>"), "{section}");
    }
    // A link leads to a section of the page, whatever `#` is in names.
    for link in page.split("href=\"").skip(1) {
        let target = link.split('"').next().unwrap();
        let id = target.strip_prefix('#').unwrap_or("result");
        assert!(page.contains(&format!("id=\"{id}\"")), "{target}");
    }
}

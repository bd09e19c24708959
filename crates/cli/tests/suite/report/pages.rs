//! Pages and figures.

use super::*;

#[test]
fn the_page_and_the_figures_need_nothing_beside_them() {
    let folder = tempfile::tempdir().unwrap();
    simulate(&folder, "fair", "logs");
    let made = report(
        &folder,
        &["logs", "--html", "page.html", "--figures", "figures"],
    );
    assert!(
        made.status.success() && out(&made).is_empty(),
        "{}",
        err(&made)
    );
    let page = read(&folder, "page.html");
    assert!(page.starts_with("<!DOCTYPE html>") && page.trim_end().ends_with("</html>"));
    assert!(page.contains("SIMULATED") && page.contains("Who ran where") && page.contains("lbm#6"));
    for name in ["timeline", "completion", "slowdowns", "memory"] {
        assert!(
            read(&folder, &format!("figures/{name}.svg")).contains("<svg"),
            "{name}"
        );
    }
    // What can't be written is told, and nothing else is lost.
    write(&folder, "file", "");
    let made = report(&folder, &["logs", "--html", "file/page.html"]);
    assert!(
        !made.status.success() && err(&made).contains("file/page.html"),
        "{}",
        err(&made)
    );
}

/// A page or figure takes the place of none of the files that it is made of, nor of any other that cosched did not make.
#[test]
fn only_pages_and_figures_are_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let run = [
        "run", "-q", "-j1", "-p", "fifo", "--solo", "measure", "--logs", "r", "echo {}", ":::",
        "gz-1",
    ];
    let made = cosched(&folder, &run);
    assert!(made.status.success(), "{}", err(&made));
    write(&folder, "mix.toml", SIMULATED);
    compare(&folder, "linux,fair", "2");
    write(
        &folder,
        "own.html",
        "<!DOCTYPE html>\n<title>by hand</title>\n",
    );
    for (of, file) in [
        ("r", "r/run.json"),
        ("r", "r/series.jsonl"),
        ("r", "r/echo.out"),
        ("r", "r/solo.json"),
        ("c", "c/compare.json"),
        ("c", "c/comparison.csv"),
        ("c", "c/runs/0001/mix/linux/run.json"),
        ("c", "c/runs/0001/mix/linux/series.jsonl"),
        ("c", "c/mixes/mix.toml"),
        ("r", "own.html"),
    ] {
        let before = read(&folder, file);
        let told = error(&folder, &[of, "--html", file]);
        assert!(
            told.contains(&format!(
                "--html {file}: this file is not a page that cosched made"
            )),
            "{told}"
        );
        assert_eq!(read(&folder, file), before, "{file}");
    }
    // What cosched made is made again, and an empty file holds nothing.
    write(&folder, "page.html", "");
    for (of, file) in [
        ("r", "page.html"),
        ("c", "page.html"),
        ("c", "c/comparison.html"),
    ] {
        let made = report(&folder, &[of, "--html", file]);
        assert!(made.status.success(), "{file}: {}", err(&made));
        assert!(read(&folder, file).starts_with("<!DOCTYPE html>"), "{file}");
    }

    // All figures are written, or none.
    let figures = ["r", "--figures", "figures", "-q"];
    for attempt in ["first", "again"] {
        let made = report(&folder, &figures);
        assert!(made.status.success(), "{attempt}: {}", err(&made));
    }
    std::fs::remove_file(folder.path().join("figures/completion.svg")).unwrap();
    write(
        &folder,
        "figures/timeline.svg",
        "<svg xmlns=\"http://www.w3.org/2000/svg\"/>\n",
    );
    let told = error(&folder, &figures);
    assert!(
        told.contains("figures/timeline.svg: this file is not a figure that cosched made"),
        "{told}"
    );
    assert!(!folder.path().join("figures/completion.svg").exists());
    assert!(read(&folder, "figures/timeline.svg").ends_with("svg\"/>\n"));
}

/// How wide pages are looked at, in CSS pixels.
const WIDTHS: [u32; 3] = [360, 1280, 2560];

/// The page in a browser: it says nothing on its console, and nothing stands out of it at the side.
#[test]
fn a_browser_shows_the_pages_without_complaint() {
    let Some(browser) = ["chromium", "chromium-browser", "google-chrome"]
        .into_iter()
        .find(|name| {
            Command::new(name)
                .arg("--version")
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .is_ok_and(|status| status.success())
        })
    else {
        eprintln!("skipped, because there is no Chromium");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    simulate(&folder, "fair", "logs");
    compare(&folder, "linux,fair", "3");
    assert!(
        report(&folder, &["logs", "--html", "run.html", "-q"])
            .status
            .success()
    );
    std::fs::copy(
        folder.path().join("c/comparison.html"),
        folder.path().join("compare.html"),
    )
    .unwrap();
    // A page with frames of all widths measures what is in them.
    let frames: String = ["run.html", "compare.html"]
        .iter()
        .flat_map(|page| {
            WIDTHS.map(|width| {
                format!("<iframe src=\"{page}\" width=\"{width}\" height=\"900\"></iframe>")
            })
        })
        .collect();
    let script = "onload = () => { document.title = [...document.querySelectorAll('iframe')].map((frame) => { \
                  const page = frame.contentDocument.scrollingElement; \
                  return page.scrollWidth <= page.clientWidth && page.scrollHeight > 900 ? 'fits' : page.scrollWidth + '>' + \
                  page.clientWidth; }).join(' '); }";
    write(
        &folder,
        "all.html",
        &format!("<!DOCTYPE html><title>-</title>{frames}<script>{script}</script>"),
    );
    let shown = browse(browser, folder.path(), "all.html");
    let dom = out(&shown);
    let title = dom
        .split("<title>")
        .nth(1)
        .and_then(|rest| rest.split("</title>").next());
    assert_eq!(
        title,
        Some("fits fits fits fits fits fits"),
        "{}",
        err(&shown)
    );
    assert!(!err(&shown).contains("CONSOLE"), "{}", err(&shown));
}

/// The page after its scripts have run, and what the browser says.
fn browse(browser: &str, folder: &Path, page: &str) -> Output {
    let mut command = Command::new("timeout");
    command.args([
        "60",
        browser,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--disable-sync",
    ]);
    command.args([
        "--disable-background-networking",
        "--disable-component-update",
        "--allow-file-access-from-files",
    ]);
    command.args([
        "--virtual-time-budget=5000",
        "--enable-logging=stderr",
        "--v=0",
        "--dump-dom",
    ]);
    command.arg(format!(
        "--user-data-dir={}",
        folder.join("profile").display()
    ));
    command.arg(format!("file://{}", folder.join(page).display()));
    command.output().expect("the browser runs")
}

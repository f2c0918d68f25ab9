#!/usr/bin/env python3
"""The page of `sluice report`, read by another parser: complete, escaped, without external
references."""

import html.parser
import json
import os
import re
import shutil
import struct
import subprocess
import sys

sys.path[:0] = [os.path.join(os.path.dirname(__file__), "..", name) for name in ("lib", "oracle")]
from tap import QUICK, SOURCE, Skip, check, run, sluice  # noqa: E402

VOID = {"meta", "link"}


class Page(html.parser.HTMLParser):
    """Checks that tags are closed in order, and collects attributes and visible text."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.ids, self.links, self.words = [], {}, set(), [], []
        self.feed(text)
        self.close()
        check(self.open == [], f"not closed: {self.open}")
        check(self.tags.get("html") == 1 and self.tags.get("main") == 1, f"{self.tags}")

    def handle_starttag(self, tag, attrs):
        named = dict(attrs)
        check(len(named) == len(attrs), f"an attribute twice: {tag} {attrs}")
        self.tags[tag] = self.tags.get(tag, 0) + 1
        for name, value in attrs:
            check(not name.startswith("on"), f"{tag} {name}")
            if name in ("src", "href", "action", "srcset", "data"):
                self.links.append(value)
        if "id" in named:
            check(named["id"] not in self.ids, f"id twice: {named['id']}")
            self.ids.add(named["id"])
        if tag == "svg":
            check(named.get("role") == "img" and named.get("aria-label"), f"a picture without words: {named}")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        check(tag in ("path", "circle"), f"<{tag}/>")
        self.tags[tag] = self.tags.get(tag, 0) + 1

    def handle_endtag(self, tag):
        check(self.open and self.open[-1] == tag, f"</{tag}> in {self.open}")
        self.open.pop()

    def handle_data(self, data):
        if "style" not in self.open:
            self.words.append(data)

    def text(self):
        return " ".join("".join(self.words).split())


def read(path):
    with open(path, "rb") as file:
        raw = file.read()
    text = raw.decode("utf-8")
    page = Page(text)
    check(not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", text), "a control character")
    check("script" not in page.tags and "img" not in page.tags, f"{page.tags}")
    for link in page.links:
        check(link == "data:," or (link.startswith("#") and link[1:] in page.ids), f"a reference to {link}")
    check(not re.search(r"https?:|@import|url\(", text), "a reference outside")
    return page, len(raw)


def factored(folder, store="t.slc"):
    out = os.path.join(folder, "run")
    store = os.path.join(folder, store)
    sluice("generate", store, "--dims", "60x50x40", "--nnz", 3000, "-q")
    sluice("cpd", store, "-r", 5, "-i", 4, "--tol", 0, "--seed", 17, "-o", out, "-q")
    return out


def whole(folder):
    """The page contains fits, seed, command, identity, and components in the order of `top`."""
    out = factored(folder)
    path = os.path.join(folder, "r.html")
    check("report" in sluice("report", out, "-o", path)[0].lower(), "says nothing")
    page, _ = read(path)
    text = page.text()
    with open(os.path.join(out, "run.json"), encoding="utf-8") as file:
        record = json.load(file)
    check(f"{record['fit']:.6f}" in text and record["tensor"]["content_sum"] in text, text)
    check("Estimate and result" in text and re.search(r"Peak memory[\d.]+ \w+ expected, [\d.]+ \w+ measured", text), text)
    check("Seed17" in text and "--seed 17" in text, text)
    for iteration in record["iterations"]:
        check(f"{iteration['fit']:.8f}" in text, f"fit of {iteration}")
    check({"fit", "time", "reading", "memory", "weights", "components", "again"} <= page.ids, f"{page.ids}")
    check(page.tags["svg"] == 4 + 5 * 3, f"{page.tags['svg']} pictures")
    top = json.loads(sluice("top", out, "--json", "-n", 10)[0])
    order = [int(number) for number in re.findall(r"Component (\d+), weight", text)]
    check(order == [c["component"] for c in top["components"]], f"{order}")
    first = top["components"][0]["modes"][0]["rows"]
    for row in first:
        check(f"{row['index']}{row['value']:.4g}" in text, f"row {row}")
    sluice("report", out, "-o", path, status=5)
    sluice("report", out, "-o", path, "-f", "-q", "--components", 2, "-n", 1)
    check("2 of 5 components" in read(path)[0].text(), "all components")
    check(not os.path.exists(path + ".tmp"), "a temporary file is left")


def refused(folder):
    """Errors: a budget that is too small, a folder without a run, a place within a store, a folder
    as output."""
    out = factored(folder)
    path = os.path.join(folder, "r.html")
    check("--memory" in sluice("report", out, "-o", path, "--memory", "1MiB", status=4)[1], "budget")
    os.mkdir(os.path.join(folder, "empty"))
    check("neither" in sluice("report", os.path.join(folder, "empty"), "-o", path, status=3)[1], "no run")
    sluice("report", out, "-o", os.path.join(folder, "t.slc", "r.html"), status=2)
    sluice("report", out, "-o", folder, "-f", status=5)
    record = os.path.join(out, "run.json")
    with open(record, "rb") as file:
        before = file.read()
    check("file of the results" in sluice("report", out, "-o", record, "-f", status=2)[1], "its own record")
    foreign = shutil.copy(record, os.path.join(folder, "foreign.json"))
    check("is not an HTML page" in sluice("report", out, "-o", foreign, "-f", status=2)[1], "a foreign file")
    with open(record, "rb") as file:
        check(file.read() == before, "the record changed")
    # A result file that is missing.
    os.remove(os.path.join(out, "lambda.npy"))
    check("file of the results" in sluice("report", out, "-o", os.path.join(out, "lambda.npy"), status=2)[1], "its weights")
    check(not os.path.exists(path), "something was written")


def hostile(folder):
    """Names and a record that try to break out of the page, or are no text."""
    name = "<script>alert(1)<\"'&\u202e.slc"
    out = factored(folder, name)
    path = os.path.join(folder, "r.html")
    sluice("report", out, "-o", path)
    text = read(path)[0].text()
    check("<script>alert(1)<\"'&\ufffd.slc" in text, text)
    with open(os.path.join(out, "run.json"), encoding="utf-8") as file:
        record = json.load(file)
    for key, value in (("command", ["</code><script>", "a\u001b[31mb", "it's", None, {}]),
                       ("options", {"</td><script>x</script>": "\u007f\u0085", "seed": [[1]], "x": {"y": {"z": 1}}}),
                       ("iterations", [{"fit": -1e308, "seconds": -1}, {"fit": 1e308, "seconds": 1e308}, 7, None]),
                       ("counters", "none"), ("plan", [1]), ("seconds", None), ("reason", "<b>"), ("fit", "x")):
        with open(os.path.join(out, "run.json"), "w", encoding="utf-8") as file:
            json.dump(record | {key: value}, file)
        sluice("report", out, "-o", path, "-f")
        read(path)
    raw = os.path.join(os.fsencode(folder), b"run-\xff\x01<i>")
    shutil.copytree(os.fsencode(out), raw)
    with open(os.path.join(out, "run.json"), "w", encoding="utf-8") as file:
        json.dump(record, file)
    done = subprocess.run([os.environ["SLUICE"], "report", raw, "-o", path, "-f", "-q"], capture_output=True, check=False)
    check(done.returncode == 0, f"{done.stderr}")
    check("run-\ufffd\ufffd<i>" in read(path)[0].text(), "the name of the folder")


def unfinished(folder):
    """A checkpoint alone, a run stopped by its time limit, and factors from elsewhere."""
    out, store, path = (os.path.join(folder, name) for name in ("run", "t.slc", "r.html"))
    sluice("generate", store, "--dims", "60x50x40", "--nnz", 3000, "-q")
    sluice("cpd", store, "-r", 2, "-i", 500, "--tol", 0, "--maxsecs", 0.001, "--checkpoint-interval", 0, "-o", out,
           "-q", status=75)
    sluice("report", out, "-o", path)
    page, _ = read(path)
    check("stopped by its time limit" in page.text() and "checkpoint" in page.ids, page.text())
    sluice("cpd", store, "-r", 2, "-i", 30, "--tol", 0, "--maxsecs", 60, "-o", out, "-q")
    sluice("report", out, "-o", path, "-f")
    check("resumed from a checkpoint 1 time;" in read(path)[0].text(), "resumed")
    sluice("cpd", store, "-r", 2, "-i", 500, "--tol", 0, "--maxsecs", 0.001, "--checkpoint-interval", 0, "-o", out,
           "-q", status=75)
    alone = os.path.join(folder, "alone")
    os.mkdir(alone)
    for name in os.listdir(out):
        if not name.endswith((".npy", ".json")):
            shutil.copy(os.path.join(out, name), alone)
    sluice("report", alone, "-o", path, "-f")
    page, _ = read(path)
    check("has written a checkpoint" in page.text() and "components" not in page.ids, page.text())
    os.remove(os.path.join(out, "run.json"))
    for name in os.listdir(alone):
        os.remove(os.path.join(out, name))
    sluice("report", out, "-o", path, "-f")
    check("no run.json" in read(path)[0].text() and "components" in read(path)[0].ids, "factors alone")


def long_modes(folder):
    """A page for rank 64 and modes of size one million has under 1 MB and is made within a budget
    smaller than any factor."""
    rows = 100000 if QUICK else 1000000
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, 64), }}".ljust(117) + "\n"
    for k in range(3):
        with open(os.path.join(folder, f"mode-{k + 1}.npy"), "wb") as file:
            file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
            piece = b"".join(struct.pack("<f", ((i * 2654435761 + k) % 2**32 - 2**31) / 2**31) for i in range(64009))
            left = rows * 64 * 4
            while left > 0:
                left -= file.write(piece[:left])
    path = os.path.join(folder, "r.html")
    sluice("report", folder, "-o", path, "--memory", "64MiB")
    page, size = read(path)
    check(size < 1000000, f"{size} bytes")
    check(page.tags["svg"] == 3 * 64, f"{page.tags['svg']} pictures")


def held_out(folder):
    """The page shows the hold-out error as a number and as a line."""
    out, store, path = (os.path.join(folder, name) for name in ("run", "t.slc", "r.html"))
    sluice("generate", store, "--dims", "60x50x1", "--nnz", 2000, "-q")
    sluice("cpd", store, "-r", 2, "-i", 3, "--tol", 0, "--holdout", "10%", "-o", out, "-q")
    sluice("report", out, "-o", path, "-q")
    page, _ = read(path)
    with open(os.path.join(out, "run.json"), encoding="utf-8") as file:
        error = json.load(file)["holdout"]
    text = page.text()
    check(f"Held-out RMSE{error['rmse']:.4g}" in text and f"Mean absolute error{error['mae']:.10g}" in text, text)
    check(page.tags["svg"] == 5 + 2 * 3 and "Mode 31 row" in text and "60 × 50 × 1" in text, text)


def sweep(folder):
    """Ranks and starts side by side: the numbers of sweep.json, the suggestion and its reason; also
    unfinished or forged."""
    out, store, path = (os.path.join(folder, name) for name in ("sweep", "<t>.slc", "r.html"))
    sluice("generate", store, "--dims", "30x20x10", "--nnz", 2000, "--seed", 3, "--rank", 2, "--noise", 0.1, "-q")
    sluice("cpd", store, "-r", "1,2,4", "--runs", 3, "-i", 6, "--holdout", "5%", "-o", out, "-q")
    sluice("report", out, "-o", path)
    page, size = read(path)
    text = page.text()
    place = os.path.join(out, "sweep.json")
    with open(place, encoding="utf-8") as file:
        record = json.load(file)
    best = next(run for run in record["runs"] if run["folder"] == record["suggestion"]["best"])
    check(f"{record['suggestion']['why']}." in text and f"seed {best['seed']} and a fit of {best['fit']:.6f}" in text, text)
    check(f"Rank {record['suggestion']['rank']} is suggested" in text or "No rank is suggested" in text, text)
    for one in record["ranks"]:
        core = f"{one['core_consistency']:.1f}" if one["core_consistency"] >= 0 else "<\u00a00"
        agreement = "-" if one["agreement"] is None else f"{one['agreement']:.3f}"
        check(f"{one['rank']}3{one['fit']:.6f}" in text and f"{core}\u00a0%{agreement}{one['reached']}" in "".join(page.words),
              f"{one}")
    for one in record["runs"]:
        check(f"{one['rank']}{one['seed']}{one['fit']:.6f}" in text and one["folder"] in text, f"{one}")
    check(page.tags["svg"] == 4 and page.tags["table"] == 3 and size < 60000, f"{page.tags} {size}")
    check({"which", "plots", "ranks", "runs", "again"} <= page.ids and "<t>.slc" in text, f"{page.ids}")
    check("--rank 1,2,4" in text.replace("-r 1,2,4", "--rank 1,2,4") and "--runs 3" in text, text)
    sluice("report", out, "-o", path, status=5)
    check("--memory" in sluice("report", out, "-o", path, "-f", "--memory", "1MiB", status=4)[1], "budget")

    def told(**members):
        with open(place, "w", encoding="utf-8") as file:
            json.dump(record | members, file)
        sluice("report", out, "-o", path, "-f", "-q")
        return read(path)[0]

    page = told(complete=False, ranks=record["ranks"][:1], runs=record["runs"][:4], suggestion=None)
    check("not complete" in page.text() and "2" in page.text() and page.tags["svg"] == 4, page.text())
    page = told(runs=[], ranks=[], complete=False)
    check("No run is complete yet" in page.text() and "svg" not in page.tags, page.text())
    page = told(ranks=[one | {"core_consistency": -1e300, "core_consistency_note": "<b>&"} for one in record["ranks"]],
                runs=[one | {"fit": -1e308 * (one["seed"] % 3 - 1), "seconds": 1e308} for one in record["runs"]])
    check("below -100" in page.text() and "<b>&" in page.text() and "<\u00a00\u00a0%" in "".join(page.words), page.text())
    many = [best | {"rank": rank, "seed": seed} for rank in (1, 2, 3) for seed in range(1000)]
    page = told(runs=many, ranks=[])
    check("1000 of 3000 runs" in page.text(), page.text())
    told(identity={"</td><script>": "\u007f"}, store="</p><script>")
    with open(place, "w", encoding="utf-8") as file:
        file.write("{")
    check("sweep.json" in sluice("report", out, "-o", path, "-f", status=3)[1], "no sweep")


def few_points(folder):
    """The page draws no line for one iteration or none."""
    out, store, path = (os.path.join(folder, name) for name in ("run", "t.slc", "r.html"))
    sluice("generate", store, "--dims", "60x50x40", "--nnz", 3000, "-q")
    for iterations, words in ((1, "One iteration: "), (0, "Nothing to draw.")):
        sluice("cpd", store, "-r", 1, "-i", iterations, "-o", out, "--restart", "-q")
        sluice("report", out, "-o", path, "-f", "-q")
        page, _ = read(path)
        check(page.text().count(words) == 4 and page.tags["svg"] == 3, page.text())


def several(folder):
    """A page compares two runs, and lists the runs of a folder, best first, with links."""
    runs = os.path.join(folder, "an array & <more>")
    os.makedirs(runs)
    store = os.path.join(folder, "t.slc")
    sluice("generate", store, "--dims", "20x15x10", "--nnz", 1500, "--seed", 2, "--rank", 3, "--noise", 0.2, "-q")
    fits = {}
    for name, rank in (("1", 2), ("2", 4), ("3", 3)):
        out = os.path.join(runs, name)
        sluice("cpd", store, "-r", rank, "-i", 10, "-o", out, "-q")
        with open(os.path.join(out, "run.json"), encoding="utf-8") as file:
            fits[name] = json.load(file)["fit"]
    os.mkdir(os.path.join(runs, "4"))  # a run that has not begun
    sluice("report", os.path.join(runs, "2"), "-o", os.path.join(runs, "2", "report.html"), "-q")
    path = os.path.join(folder, "runs.html")
    sluice("report", runs, "-o", path)
    with open(path, encoding="utf-8") as file:
        page = Page(file.read())
    best = sorted(fits, key=lambda name: -fits[name])
    links = [link for link in page.links if link.startswith("an%20array")]
    check(links == [f"an%20array%20%26%20%3Cmore%3E/{name}/{'report.html' if name == '2' else 'run.json'}" for name in best], page.links)
    places = [page.text().index(f"{fits[name]:.6f}") for name in best]
    check(places == sorted(places) and "--rank" in page.text() and "--tol" not in page.text(), page.text())
    said, _ = sluice("report", *(os.path.join(runs, name) for name in "12"), "-o", path, "-f")
    check(f"Report of {runs}/1 and {runs}/2 in " in said, said)
    with open(path, encoding="utf-8") as file:
        page = Page(file.read())
    score = json.loads(sluice("compare", *(os.path.join(runs, name) for name in "12"), "--json")[0])["runs"][1]["score"]
    with open(os.path.join(runs, "1", "run.json"), encoding="utf-8") as file:
        record = json.load(file)
    record["options"] |= {"\x1b[2J\u202e": "\u202e"}
    with open(os.path.join(runs, "1", "run.json"), "w", encoding="utf-8") as file:
        json.dump(record, file)
    said = sluice("compare", *(os.path.join(runs, name) for name in "12"))[0]
    check("\x1b" not in said and "\u202e" not in said and "--?[2J???" in said, said)
    check({"runs", "components"} <= page.ids and f"factor match score {score:.4f}" in page.text(), page.text())
    check("neither run.json nor mode-1.npy" in sluice("report", os.path.join(runs, "4"), "-o", path, "-f", status=3)[1], "no runs")
    with open(os.path.join(runs, "4", "run.json"), "w", encoding="utf-8") as file:
        file.write("{")
    for text in ("{", "[]", '{"schema": "sluice-run-0"}'):
        with open(os.path.join(runs, "4", "run.json"), "w", encoding="utf-8") as file:
            file.write(text)
        said = sluice("report", runs, "-o", path, "-f")[1]
        check("4/run.json" in said and "left out" in said and said.count("\n") == 1, said)
        with open(path, encoding="utf-8") as file:
            page = Page(file.read())
        check([link for link in page.links if link.startswith("an%20array")] == links, page.links)
        check("1 more folder has a run.json that cannot be read" in page.text(), page.text())
    for name in "123":
        shutil.rmtree(os.path.join(runs, name))
    check("4/run.json" in sluice("report", runs, "-o", path, "-f", status=3)[1], "no record can be read")


def in_a_browser(folder):
    """Chromium, if available, shows the page without error or overflow in both color schemes."""
    if QUICK:
        raise Skip("the page is the same as without a sanitizer")
    out = factored(folder)
    path = os.path.join(folder, "r.html")
    sluice("report", out, "-o", path)
    done = subprocess.run([sys.executable, os.path.join(SOURCE, "tools", "scripts", "check-report"), path], capture_output=True,
                          text=True, check=False)
    if done.returncode == 77:
        raise Skip(done.stdout.strip())
    check(done.returncode == 0, done.stdout + done.stderr)


run([
    ("all of a run", whole),
    ("refused", refused),
    ("hostile names and records", hostile),
    ("unfinished runs", unfinished),
    ("held-out nonzeros", held_out),
    ("few points", few_points),
    ("sweeps", sweep),
    ("long modes", long_modes),
    ("several runs", several),
    ("in a browser", in_a_browser),
])

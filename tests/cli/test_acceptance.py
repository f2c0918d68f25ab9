#!/usr/bin/env python3
"""tools/gpu-acceptance: both of its calls on a bare machine, with an emulated device; a run ended
by a signal; a machine without a device. Then the parts that need no device."""

import glob
import io
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tarfile
import time

sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(os.path.dirname(__file__), "..", name) for name in ("lib", "oracle")]
from tap import QUICK, SOURCE, check, run  # noqa: E402

sys.path.insert(0, os.path.join(SOURCE, "tools", "scripts", "lib"))
import gpu_pack  # noqa: E402
import gpu_runner  # noqa: E402
import gpu_tensors  # noqa: E402

SCRIPT = os.path.join(SOURCE, "tools", "gpu-acceptance")
# Substitutes for the device tests. The first passes if the variable names the packed libraries.
GOOD = 'case "$LD_LIBRARY_PATH" in "$(dirname "$0")"*) echo "ok 1";; *) echo "not ok 1 - no libraries"; exit 1;; esac\n'
BAD = 'echo "# 3 is not 2"; echo "not ok 1 - numbers"; echo "out of numbers" >&2; exit 1\n'
# Substitutes for system programs, which must not load the packed libraries.
SMI = 'echo "Emulated card, 1.2.3, ${LD_LIBRARY_PATH:-no variable}"\n'
SANITIZER = '[ -z "$LD_LIBRARY_PATH" ] || exit 3; case "$5" in */planted_race) exit 9;; esac\n'

ERRORS = """case "$2 $5" in "initcheck "*/device_mttkrp)
echo "========= COMPUTE-SANITIZER"
echo "========= Uninitialized access at 0x10"; echo "=========     by a copy"; echo "========= "; echo "not ok 1"
echo "========= ERROR SUMMARY: 7 errors"; exit 9;; esac
"""
# Substitutes for meson and ninja. The first writes the build file only if it sets up a folder; the
# second prints the targets of that file.
MESON = """[ "$1" = setup ] || exit 0
case "$2" in --reconfigure) shift;; esac
echo "tools/sluice: phony" > "$2/build.ninja"
case "$*" in *-Ddevice_tests=true*) echo "tests/gpu/device/device_expand: phony" >> "$2/build.ninja";; esac
"""
NINJA = 'case "$3" in -t) cat "$2/build.ninja";; *) shift 2; echo "$@" > "$(dirname "$0")/built";; esac\n'


def script(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\n" + text)
    os.chmod(path, stat.S_IRWXU)


def command(folder, program, *arguments):
    """Returns the command line of the script, with `program` as the packed command, and an
    environment with the substitutes of folder/bin."""
    packed = os.path.join(folder, "packed")
    os.makedirs(packed, exist_ok=True)
    shutil.copy(program, os.path.join(packed, "sluice"))
    environment = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
    environment["PATH"] = os.path.join(folder, "bin") + ":" + environment["PATH"]
    return ([sys.executable, SCRIPT, "--packed", packed, "--out", os.path.join(folder, "results"), "--work", folder,
             "--scale", "1e-5", *arguments], environment)


def results(folder):
    """Returns the record and the lines of the table."""
    with open(os.path.join(folder, "results", "gpu-acceptance.json"), encoding="utf-8") as file:
        record = json.load(file)
    with open(os.path.join(folder, "results", "gpu-acceptance.txt"), encoding="utf-8") as file:
        return record, file.read().splitlines()


def accept(folder, program, *arguments):
    """Returns the exit status, the output and the record."""
    words, environment = command(folder, program, *arguments)
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, env=environment)
    return done.returncode, done.stdout + done.stderr, results(folder)[0]


def check_rows(folder, wanted, status, text, record):
    """Does not check speed, which means nothing on an emulated device: figures must exist, results
    must agree."""
    found = {row["row"]: row for row in record["rows"]}
    check(status in (0, 1) and sorted(found) == sorted(wanted), text)
    places = [text.index(f"{number:2} {found[number]['verdict']}") for number in wanted]
    check(places == sorted(places), f"not in the order of --rows: {text}")
    for row in found.values():
        check(row["figures"] and row["verdict"] in ("PASS", "FALL SHORT", "SKIP"), str(row))
        for word in ("time limit", "Error", "exit status", "differ from", "differs from", "differs by", "different bits", " not "):
            check(row["row"] == 2 or all(word not in figure for figure in row["short"]), str(row))
    lines = results(folder)[1]
    check("emulated device 0, driver 1.2.3, 20" in lines[0] and lines[0].endswith("sluice v1-2-gabc"), lines[0])
    check([int(line[:2]) for line in lines[1:1 + len(wanted)]] == sorted(wanted), str(lines))
    check(record["machine"]["nvidia_smi"].endswith("no variable"), str(record["machine"]))
    check(not glob.glob(os.path.join(folder, "sluice-gpu-*")), "tensors are left")
    return found


def stand_ins(folder):
    script(os.path.join(folder, "bin", "nvidia-smi"), SMI)
    script(os.path.join(folder, "bin", "compute-sanitizer"), SANITIZER)
    for name in ("device_expand", "device_mttkrp", "planted_race"):
        script(os.path.join(folder, "packed", name), GOOD)
    with open(os.path.join(folder, "packed", "commit"), "w", encoding="utf-8") as file:
        file.write("v1-2-gabc\n")


def first_call(folder):
    stand_ins(folder)
    script(os.path.join(folder, "packed", "device_bad"), BAD)
    wanted = [2, 1] if QUICK else [1, 2, 3, 5]
    status, text, record = accept(folder, os.environ["SLUICE_EMULATED"], "--rows", ",".join(map(str, wanted)), "--seconds", "270")
    found = check_rows(folder, wanted, status, text, record)
    check(len(found[2]["short"]) == 1 and "device_bad: exit status 1; not ok 1 - numbers; # 3 is not 2" in found[2]["short"][0],
          str(found[2]))
    check("2 tests of 3 programs pass" in found[2]["figures"], str(found[2]))
    failed = [note for note in record["commands"] if note["status"] != 0]
    check(len(failed) == 1 and failed[0]["command"] == "device_bad", str(failed))
    with open(os.path.join(folder, "results", failed[0]["output"]), encoding="utf-8") as file:
        kept = file.read()
    check("3 is not 2" in kept and "out of numbers" in kept, kept)
    if 5 in wanted:
        rows = record["in_memory"]
        check({(row["precision"], row["rank"]) for row in rows} == {(p, r) for p in ("f64", "f32") for r in (16, 32, 64)}, str(rows[0]))
        check(all((row["precision"], row["rank"], row["call"] < 7) == ("f64", 32, True) for row in rows if row["call"] < 7),
              "what has marks comes first")
        check({row["kernel"] for row in rows} >= {"sluice", "blco", "genten-a", "amped"}, "the others' kernels")
        check(sum("generate wide-" in note["command"] for note in record["commands"]) == 1, "each tensor is made once")
        lines = results(folder)[1]
        shares = {entry["tensor"]: entry["ceiling_share"] for call in record["in_memory_summaries"][:7] for entry in call["summary"]}
        check(len(shares) == 7 and all(share > 0 for share in shares.values()), str(shares))
        check(any(line.startswith("  wide ") for line in lines) and any(line.startswith("  mean of six ") for line in lines), str(lines))


def second_call(folder):
    stand_ins(folder)
    wanted = [7, 4] if QUICK else [6, 8, 10, 7, 9, 4]
    status, text, record = accept(folder, os.environ["SLUICE_EMULATED"], "--rows", ",".join(map(str, wanted)), "--seconds", "240")
    found = check_rows(folder, wanted, status, text, record)
    check(found[4]["figures"] == ["a planted race is found", "8 of 8 runs complete, no error"], str(found[4]))
    if 8 in wanted:
        check(found[9]["verdict"] == "PASS" or found[9]["short"][-1].startswith("adaptive"), str(found[9]))
        check("fits differ by" in found[8]["figures"][0] and found[8]["figures"][0] not in found[8]["short"], str(found[8]))
        check("all results agree with the CPU's" in found[10]["figures"], str(found[10]))
        check(any(line.startswith("  packed ") for line in results(folder)[1]), "the summary of streaming")


def reported(folder):
    """When compute-sanitizer finds errors, the row reports the first one, and its other cases still
    run."""
    stand_ins(folder)
    script(os.path.join(folder, "bin", "compute-sanitizer"), SANITIZER + ERRORS)
    status, text, record = accept(folder, os.environ["SLUICE_EMULATED"], "--rows", "4")
    row = record["rows"][0]
    check(status == 1 and row["verdict"] == "FALL SHORT" and row["figures"][-1] == "8 of 8 runs complete", text)
    check(row["short"] == ["initcheck of device_mttkrp: exit status 9: Uninitialized access at 0x10; by a copy; ERROR SUMMARY: 7 errors"],
          str(row["short"]))


def ended(folder):
    """SIGTERM during a row: the record is valid at any time, and contains the finished rows."""
    stand_ins(folder)
    shutil.rmtree(os.path.join(folder, "results"), ignore_errors=True)
    script(os.path.join(folder, "packed", "device_slow"), "exec sleep 1000\n")
    words, environment = command(folder, os.environ["SLUICE_EMULATED"], "--rows", "1,2,3")
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as process:
        begin, record = time.monotonic(), {"commands": []}
        # Tensors are generated while the tests run.
        while not any("generate skewed-0.1" in note["command"] for note in record["commands"]):
            check(time.monotonic() - begin < 100 and process.poll() is None, f"no second row: {record}")
            time.sleep(0.02)
            if os.path.exists(os.path.join(folder, "results", "gpu-acceptance.txt")):
                record = results(folder)[0]
        check([row["verdict"] for row in record["rows"]][1:] == ["RUNNING"], str(record["rows"]))
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    check(process.returncode == 143, out + err)
    record, lines = results(folder)
    check(record["ceilings"]["rows"] == [] and record["ceilings"]["ceilings"], "the first row's figures")
    check([row["verdict"] for row in record["rows"]] == ["PASS", "STOPPED"] and lines[2].startswith(" 2 STOPPED"), str(lines))
    left = subprocess.run(["pgrep", "-f", os.path.join(folder, "packed") + "/"], capture_output=True, text=True, check=False).stdout
    check(left == "" and not glob.glob(os.path.join(folder, "sluice-gpu-*")), f"left: {left}")


def late(folder):
    """Rows are skipped when the time is used up."""
    status, text, record = accept(folder, os.environ["SLUICE_EMULATED"], "--rows", "1,3", "--seconds", "5")
    check(all("no time left" in row["figures"][0] for row in record["rows"]) and status == 77, text)


def without(folder):
    status, text, record = accept(folder, os.environ["SLUICE"])
    check(status == 77 and [row["verdict"] for row in record["rows"]] == ["SKIP"] * 10, text)
    check("nothing was measured: " in text and "CUDA" in text.splitlines()[-1], text)
    # A failed write does not end the run.
    os.mkdir(os.path.join(folder, "results", "gpu-acceptance.json.part"))
    status, text, record = accept(folder, os.environ["SLUICE"], "--rows", "1")
    check(status == 77 and "gpu-acceptance.json: " in text and len(record["rows"]) == 10, text)
    archive = os.path.join(folder, "bad.tar.xz")
    with open(archive, "wb") as file:
        file.write(b"no archive")
    others = os.path.join(folder, "others.tar.xz")
    with tarfile.open(others, "w:xz") as file:
        file.add(SCRIPT, "other/file")
    for words, message in (([folder], "no program sluice found"), ([folder, "--rows", "3,11"], "--rows 3,11"),
                           ([archive], "bad.tar.xz: "), ([others], "no program sluice found"),
                           ([folder + "/nowhere.tar.xz"], "nowhere.tar.xz: "),
                           ([folder, "--seconds", "nan"], "--seconds"), ([folder, "--scale", "0"], "--scale"),
                           ([folder, "--out", archive], "--out"), ([folder, "--work", archive + "/x"], "--work")):
        done = subprocess.run([sys.executable, SCRIPT, "--packed", *words], capture_output=True, text=True, timeout=60)
        check(done.returncode == 2 and message in done.stderr, done.stderr)


# ---- parts

def between_sizes(folder):
    """The ceiling for a working set between two measured sizes is interpolated."""
    runner = gpu_runner.Runner(folder, folder, folder, 1, 100)
    runner.record["ceilings"] = {"ceilings": [{"ceiling": "rows", "row_bytes": width, "working_bytes": mib << 20, "gb_per_s": rate}
                                              for width, factor in ((256, 1), (512, 2))
                                              for mib, rate in ((16, 8000.0 * factor), (64, 4000.0 * factor), (256, 1000.0 * factor))]}
    for mib, rate in ((1, 8000), (16, 8000), (32, 6000), (64, 4000), (128, 2500), (256, 1000), (4096, 1000)):
        check(abs(runner.ceiling("rows", mib << 20, 256) - rate) < 1e-6, f"{mib} MiB")
        check(abs(runner.ceiling("rows", mib << 20, 512) - 2 * rate) < 1e-6, f"{mib} MiB")
    check(runner.ceiling("rows", row_bytes=256) == 1000, "of all the memory")


def background(folder):
    """Tensors are generated in the background only while `background` allows it, or when a row
    waits for one."""
    ticks = os.path.join(folder, "ticks")
    script(os.path.join(folder, "slow", "sluice"),
           f'i=0; while [ $i -lt 60 ]; do echo >> {ticks}; sleep 0.02; i=$((i+1)); done; mkdir -p "$2"\n')
    runner = gpu_runner.Runner(os.path.join(folder, "slow"), folder, folder, 1e-5, 100)
    runner.tensors = tensors = gpu_tensors.Tensors(runner)
    tensors.probe()

    def ticked():
        return os.path.getsize(ticks) if os.path.exists(ticks) else 0

    def wait_for(condition):
        begin = time.monotonic()
        while not condition():
            check(time.monotonic() - begin < 60, "nothing happens")
            time.sleep(0.01)

    short, streamed = gpu_tensors.key("short"), gpu_tensors.key("long")
    try:
        tensors.plan([short, streamed])
        time.sleep(0.1)
        check(ticked() == 0, "it began without leave")
        tensors.background(True)
        wait_for(ticked)
        tensors.background(False)
        time.sleep(0.1)
        halted = ticked()
        time.sleep(0.3)
        check(ticked() == halted < 60 and not tensors.made, "it was not halted")
        path = tensors.get("short")
        check(ticked() == 60 and os.path.isdir(path) and list(tensors.made) == [short], "a row that needs it waits")
        time.sleep(0.2)
        check(ticked() == 60, "the next began without leave")
        tensors.background(True)
        wait_for(lambda: streamed in tensors.made)
        tensors.keep_only([streamed])
        check(not os.path.exists(path) and os.path.isdir(tensors.get("long")), "what nobody needs is dropped")
    finally:
        tensors.close()


def built(folder):
    """A build folder that exists is set up again, so that device tests are built in it too."""
    script(os.path.join(folder, "bin", "meson"), MESON)
    script(os.path.join(folder, "bin", "ninja"), NINJA)
    before, os.environ["PATH"] = os.environ["PATH"], os.path.join(folder, "bin") + ":" + os.environ["PATH"]
    try:
        for state in ("empty", "without device tests"):
            build = os.path.join(folder, state)
            os.mkdir(build)
            if state != "empty":
                with open(os.path.join(build, "build.ninja"), "w", encoding="utf-8") as file:
                    file.write("tools/sluice: phony\n")
            programs = ["tools/sluice", "tests/gpu/device/device_expand"]
            check(gpu_pack.build(build, "90") == [os.path.join(build, name) for name in programs], state)
            with open(os.path.join(folder, "bin", "built"), encoding="utf-8") as file:
                check(file.read().split() == programs, state)
        script(os.path.join(folder, "bin", "meson"), MESON.replace("device_expand", "nothing"))
        try:
            gpu_pack.build(build, "90")
            check(False, "a build without device tests is accepted")
        except gpu_pack.CannotBuild as reason:
            check("no device tests" in str(reason), str(reason))
    finally:
        os.environ["PATH"] = before


def archives(folder):
    """The files of an archive are unpacked below its folder or not at all."""
    inside = os.path.join(folder, "inside")
    script(os.path.join(inside, "sluice"), "exit 0\n")
    path = os.path.join(folder, "acc.tar.xz")
    gpu_pack.archive(inside, path)
    check(gpu_pack.unpack(path, os.path.join(folder, "a")) == os.path.join(folder, "a", "acc"), "its folder")
    check(os.access(os.path.join(folder, "a", "acc", "sluice"), os.X_OK), "a program")
    for name in ("acc/../../evil", "/" + folder.strip("/") + "/evil"):
        with tarfile.open(path, "w:xz") as file:
            member = tarfile.TarInfo(name)
            member.size = 1
            file.addfile(member, io.BytesIO(b"x"))
        try:
            gpu_pack.unpack(path, os.path.join(folder, "b", "c"))
        except gpu_pack.NotPacked:
            pass
        check(not os.path.exists(os.path.join(folder, "evil")) and not os.path.exists(os.path.join(folder, "b", "evil")), name)
        with tarfile.open(path) as file:
            try:
                list(gpu_pack.safe_members(file))
                check(False, "accepted: " + name)
            except tarfile.TarError:
                pass


run([
    ("the first call on an emulated device", first_call),
    ("the second call", second_call),
    ("errors under compute-sanitizer", reported),
    ("SIGTERM", ended),
    ("no time", late),
    ("no device", without),
    ("ceilings between measured sizes", between_sizes),
    ("tensors in the background", background),
    ("builds", built),
    ("archives", archives),
])

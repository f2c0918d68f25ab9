"""Client of the command as a server (tests/cli/served.c): each run is its own process, with the
libraries already loaded."""

import atexit
import os
import select
import struct
import subprocess
import tempfile


class Server:
    """Starts at the first run, so that the children inherit the limits and environment that the
    test has set."""

    def __init__(self, path):
        self.path, self.process = path, None

    def start(self):
        self.files = tempfile.TemporaryFile(), tempfile.TemporaryFile()
        numbers = [file.fileno() for file in self.files]
        self.process = subprocess.Popen([self.path, "--serve", *map(str, numbers)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, pass_fds=numbers, bufsize=0,
                                        start_new_session=True)
        atexit.register(self.stop)

    def stop(self):
        """Closes the request pipe, which ends the server."""
        self.process.stdin.close()
        self.process.wait()

    def seconds(self):
        """Processor time of the runs so far; the system reports it to a parent only after the
        server has ended."""
        if self.process is None or self.process.returncode is not None:
            return 0
        with open(f"/proc/{self.process.pid}/stat") as file:
            ticks = file.read().rsplit(")", 1)[1].split()[11:15]
        return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")

    def run(self, args, timeout=None, cwd="."):
        """Like subprocess.run with captured text."""
        if self.process is None:
            self.start()
        for file in self.files:
            os.ftruncate(file.fileno(), 0)
            os.lseek(file.fileno(), 0, os.SEEK_SET)
        request = b"".join(os.fsencode(arg) + b"\0" for arg in (cwd, *args))
        self.process.stdin.write(struct.pack("=I", len(request)) + request)
        if not select.select([self.process.stdout], [], [], timeout)[0]:
            os.killpg(self.process.pid, 9)
            raise subprocess.TimeoutExpired(args, timeout)
        reply = self.process.stdout.read(4)
        if len(reply) != 4:
            raise AssertionError(f"the server of the command ended: {self.process.wait()}, {args}")
        texts = [os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0).decode() for file in self.files]
        status = os.waitstatus_to_exitcode(struct.unpack("=i", reply)[0])
        return subprocess.CompletedProcess(args, status, *texts)

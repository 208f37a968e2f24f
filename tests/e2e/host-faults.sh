#!/usr/bin/env bash
# Faults of the host: a file system that runs full under a pool's drives, a daemon that is stopped for
# longer than its drives' deadline, memory that is refused. What was flushed is there in each case.
# timeout: 400
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

# A small file system needs a mount; others than root make one in a namespace of their own.
if [ "$(id -u)" != 0 ] && [ -z "${CONVECT_IN_NAMESPACE:-}" ]; then
  if unshare --user --map-root-user --mount true 2>/dev/null; then
    trap - EXIT
    CONVECT_IN_NAMESPACE=1 exec unshare --user --map-root-user --mount \
      env CONVECT_IN_NAMESPACE=1 bash "${BASH_SOURCE[0]}"
  fi
fi

# Runs Python that has a connected libnbd handle `h`, and a verifier: `put` writes a MiB and notes what
# may be read there, `sync` flushes, `check` reads everything. What is noted outlives the command.
nbd() { # NAME PYTHON
  nbdsh -u "$(uri "$1")" -c "$(cat "$work/verifier.py")" -c "$2"
}
cat >verifier.py <<'PYTHON'
import errno, json, nbd, os, random, time
import content as contents
MIB = contents.MIB
NOTES = "notes.json"
# By MiB: the version that is durable, and the newest that was sent.
notes = {int(k): v for k, v in json.load(open(NOTES)).items()} if os.path.exists(NOTES) else {}

def content(mib, version):
    return contents.mib(version, mib)

def save():
    json.dump(notes, open(NOTES + ".new", "w"))
    os.rename(NOTES + ".new", NOTES)

# Notes the next version of a MiB and returns what it is made of.
def next_version(mib):
    durable, newest = notes.get(mib, (0, 0))
    notes[mib] = (durable, newest + 1)
    save()
    return content(mib, newest + 1)

def put(mib):
    h.pwrite(next_version(mib), mib * MIB)

def sync(mibs):
    h.flush()
    for mib in mibs:
        notes[mib] = (notes[mib][1], notes[mib][1])
    save()

# Each block of 4 KiB is one of the versions that it may have: the durable one or a later one.
def check():
    for mib, (durable, newest) in sorted(notes.items()):
        data = h.pread(MIB, mib * MIB)
        may = [content(mib, v) if v else bytes(MIB) for v in range(durable, newest + 1)]
        for at in range(0, MIB, 4096):
            block = data[at:at + 4096]
            assert any(block == one[at:at + 4096] for one in may), f"MiB {mib}, byte {at} is wrong"
    print("checked", len(notes), "MiB")

# Writes MiB after MiB, eight to a flush; returns the error that ended it, if any.
def fill(first, last):
    batch = []
    try:
        for mib in range(first, last):
            put(mib)
            batch.append(mib)
            if len(batch) == 8:
                sync(batch)
                batch = []
        sync(batch)
    except nbd.Error as error:
        return error
    return None
PYTHON

# A file system with room for 160 MiB until `make_room`, and for 400 MiB then.
small_file_system() { # FOLDER
  mkdir -p "$1"
  mount -t tmpfs -o size=400M tmpfs "$1" 2>/dev/null || return 1
  fallocate -l 240M "$1/filler"
}
make_room() { rm "$work/small/filler"; }

state() { convect --json pool status "$1" | field 'd["state"]'; }
is_state() { [ "$(state "$1")" = "$2" ]; }

start_daemon

if small_file_system small; then
  say "the file system under the only drive runs full: writes fail, what was flushed stays"
  convect pool create full fast "file:$work/small/only.img?size=512M" --accept-unmirrored
  convect volume create full/disk --size 400M
  export_nbd disk full/disk
  nbd disk '
error = fill(0, 400)
assert error is not None, "400 MiB went into 160"
assert error.errnum in (errno.ENOSPC, errno.EIO), error
flushed = sum(1 for durable, _ in notes.values() if durable)
assert flushed >= 64, flushed
print("after", flushed, "MiB flushed:", error.string)
'
  convect pool status full
  grep -Eiq 'no space left on device|full file system' daemon.log || fail "the daemon does not say why"
  make_room
  restart_daemon
  nbd disk 'check()
assert fill(0, 200) is None
check()'
  convect export delete disk --yes
  convect pool destroy full --yes
  rm notes.json
  umount "$work/small"

  say "the file system under one leg runs full: the other goes on, and the leg comes back"
  small_file_system small
  convect pool create pair fast mirror "file:$work/small/a.img?size=512M" "file:$work/b.img?size=512M"
  convect volume create pair/disk --size 400M
  export_nbd disk pair/disk
  nbd disk 'assert fill(0, 200) is None
check()'
  is_state pair degraded || fail "the pool is $(state pair)"
  make_room
  convect pool online pair "file:$work/small/a.img"
  wait_until 60 is_state pair online
  nbd disk 'check()
assert fill(0, 100) is None'
  convect pool offline pair "file:$work/b.img"
  nbd disk 'check()'
  convect export delete disk --yes
  convect pool destroy pair --yes
  rm notes.json
else
  say "no file system can be mounted here: a full one is not tested"
fi

say "the daemon is stopped for longer than its drives' deadline, under a load"
restart_with() { # LINE: of the configuration
  stop_daemon
  rm convect.toml
  write_config
  printf '%s\n' "$1" >>convect.toml
  start_daemon
}
# In memory where there is room: a disk that others keep busy may miss such a deadline by itself.
drives="$work"
if [ "$(df --output=avail -B 1M /dev/shm 2>/dev/null | tail -n 1)" -ge 1024 ] 2>/dev/null; then
  drives="$(mktemp -d -p /dev/shm)"
  # shellcheck disable=SC2016  # as it is then
  defer 'rm -rf "$drives"'
fi
restart_with 'drive_deadline = "6s"'
convect pool create stopped fast "file:$drives/fast.img?size=256M" \
  slow stripe:64k "file:$drives/slow1.img?size=256M" "file:$drives/slow2.img?size=256M" --accept-unmirrored
convect volume create stopped/disk --size 256M
export_nbd disk stopped/disk
export DAEMON=$daemon_pid
nbd disk '
import signal
daemon = int(os.environ["DAEMON"])
for turn in range(4):
    mibs = random.sample(range(200), 24)
    made = [nbd.Buffer.from_bytearray(bytearray(next_version(mib))) for mib in mibs]
    sent = [h.aio_pwrite(data, mib * MIB) for data, mib in zip(made, mibs)]
    # Some are written, some in flight, some on their way when it is stopped.
    while not h.aio_command_completed(sent[2 * turn]):
        h.poll(-1)
    os.kill(daemon, signal.SIGSTOP)
    time.sleep(8)
    os.kill(daemon, signal.SIGCONT)
    while h.aio_in_flight():
        h.poll(-1)
    assert all(done == sent[2 * turn] or h.aio_command_completed(done) for done in sent)
    sync(mibs)
check()'
is_state stopped online || fail "the pool is $(state stopped)"
kill_daemon
start_daemon
nbd disk 'check()'

say "memory is refused: what was flushed is there after a restart"
nbd disk 'assert fill(0, 200) is None'
convect pool cool stopped
# Little more than it has now: what is read from the slow tier is to be kept in memory.
has="$(awk '/^VmSize/ {print $2}' "/proc/$daemon_pid/status")"
prlimit --pid "$daemon_pid" --as=$(((has + 16 * 1024) * 1024))
nbd disk '
try:
    for turn in range(4):
        check()
        error = fill(turn * 50, turn * 50 + 50)
        if error is not None:
            raise error
    print("it had enough")
except nbd.Error as error:
    print("it ended:", error)
'
if kill -0 "$daemon_pid" 2>/dev/null; then
  say "the daemon goes on"
  kill_daemon
else
  wait "$daemon_pid" || true
  daemon_pid=""
  grep -q 'memory allocation of .* bytes failed' daemon.log || fail "the daemon did not say why it ended"
fi
start_daemon
nbd disk 'check()
assert fill(0, 100) is None
check()'

stop_daemon

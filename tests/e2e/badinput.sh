#!/usr/bin/env bash
# Bad input, a row a case: each gives one clear line that says what to do, and leaves nothing
# half-made.
# timeout: 300
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

cases=0
wrong=0

# Notes a case that is not as it should be, and goes on: one run tells of all.
amiss() {
  echo "WRONG: $*" | tee -a amiss.log
  wrong=$((wrong + 1))
}

# A command is refused with an exit code, one line that begins with `error: ` and matches.
refused() { # CODE PATTERN COMMAND...
  local code=$1 pattern=$2 status=0
  shift 2
  timeout 300 "$@" </dev/null >refused.out 2>refused.err || status=$?
  [ "$status" = "$code" ] || amiss "exit code $status, not $code, of: $* ($(cat refused.err))"
  # Wrong usage is explained at length by the command line itself.
  if [ "$code" != 2 ]; then
    [ "$(grep -c . refused.err)" = 1 ] || amiss "not one line of: $*: $(cat refused.err)"
    grep -q '^error: ' refused.err || amiss "no 'error: ' of: $*: $(cat refused.err)"
  fi
  grep -qiE "$pattern" refused.err || amiss "'$pattern' is not in: $(cat refused.err) (of: $*)"
  [ ! -s refused.out ] || amiss "printed something on stdout: $*"
  cases=$((cases + 1))
}

convect_bin="$CONVECT_BIN/convect"

# --- the daemon's own start ---------------------------------------------------------------------
serve_refused() { # PATTERN CONFIG
  printf '%b\n' "$2" >bad.toml
  refused 1 "$1" "$convect_bin" serve --config bad.toml
}
good="socket = \"$work/a.sock\"\nstate_dir = \"$work/a\""
long="$work/$(printf 'x%.0s' $(seq 120))"
touch file
serve_refused 'bad.toml:1' 'socket = '
serve_refused 'bad.toml:3.*unknown field' "$good\nsockett = 1"
serve_refused 'bad.toml:3.*threads' "$good\nthreads = -1"
serve_refused 'bad.toml:3' "$good\nram_tier = \"many\""
serve_refused 'bad.toml:3' "$good\nram_tier = \"1K\""
serve_refused 'memory' "$good\nram_tier = \"900T\""
serve_refused 'socket path.*(long|bytes)' "socket = \"$long\"\nstate_dir = \"$work/a\""
serve_refused 'not absolute' "socket = \"a.sock\"\nstate_dir = \"$work/a\""
serve_refused 'file/a' "socket = \"$work/a.sock\"\nstate_dir = \"$work/file/a\""
refused 1 'no-such.toml.*--config' "$convect_bin" serve --config no-such.toml
refused 7 'no daemon responds.*convect serve' "$convect_bin" --socket "$work/a.sock" pool list
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
  printf 'socket = "%s/b.sock"\nstate_dir = "%s/b"\n' "$work" "$work" >"/tmp/convect-nobody-$$.toml"
  defer "rm -f '/tmp/convect-nobody-$$.toml'"
  cp "$convect_bin" "/tmp/convect-nobody-$$"
  defer "rm -f '/tmp/convect-nobody-$$'"
  refused 1 'permission' setpriv --reuid=65534 --regid=65534 --clear-groups \
    "/tmp/convect-nobody-$$" serve --config "/tmp/convect-nobody-$$.toml"
fi
[ ! -e a ] && [ ! -e a.sock ] && [ ! -e b ] || amiss "a refused daemon left something"

start_daemon
refused 1 'in use|already|another' "$convect_bin" serve --config convect.toml
daemon_is_ready
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
  refused 7 'permission|may not' setpriv --reuid=65534 --regid=65534 --clear-groups \
    "/tmp/convect-nobody-$$" --socket "$CONVECT_SOCKET" pool list
fi

# --- drives and pools ---------------------------------------------------------------------------
no_pool() { [ "$(convect --json pool list | field 'len(d["items"]) + len(d["absent"])')" = "$1" ]; }
create() { refused "$1" "$2" "$convect_bin" pool create p "${@:3}"; } # CODE PATTERN VDRIVE...

truncate -s 320M ext4.img xfs.img btrfs.img parts.img plain.img
mkfs.ext4 -q -F ext4.img
mkfs.xfs -q -f xfs.img
mkfs.btrfs -q -f btrfs.img
printf 'label: gpt\n,,\n' | sfdisk -q parts.img
sums() { openssl dgst -sha256 -r ext4.img xfs.img btrfs.img parts.img plain.img; }
sums >images.sums
create 3 'no-such.img' fast "file:$work/no-such.img"
create 1 'minimum size' fast "file:$work/tiny.img?size=64K"
create 1 'size' fast "file:$work/sized.img?size=lots"
create 1 'size' fast "file:$work/plain.img?size=2G"
create 2 'file:|ram:|kind' fast "floppy:$work/plain.img"
create 2 'hdd-7200' fast "model:hdd-1:file:$work/plain.img"
create 6 'ext4.*--force' fast "file:$work/ext4.img"
create 6 'xfs.*--force' fast "file:$work/xfs.img"
create 6 'btrfs.*--force' fast "file:$work/btrfs.img"
create 6 '(GPT|partition).*--force' fast "file:$work/parts.img"
create 4 'twice|same|already' fast "file:$work/plain.img" "file:$work/plain.img"
create 6 'unmirrored|accept' fast "file:$work/plain.img" slow "file:$work/other.img?size=1G"
create 3 'no-such' fast "file:$work/new.img?size=1G" slow "file:$work/no-such.img" --accept-unmirrored
create 1 'mirror' fast mirror "file:$work/plain.img"
create 1 'directory' fast "file:$work"
create 2 'fast|slow' "file:$work/plain.img"
refused 1 'name' "$convect_bin" pool create '9 lives' fast "file:$work/plain.img"
for made in tiny.img sized.img new.img other.img; do
  [ ! -e "$made" ] || amiss "$made was left by a refused command"
done
sums | cmp -s - images.sums || amiss "a refused command changed a drive"
no_pool 0 || amiss "a refused pool is there"

create_pool pool 512M 1G
convect volume create pool/disk --size 256M
refused 4 'already' "$convect_bin" pool create pool fast "file:$work/plain.img"
refused 4 'in use|pool' "$convect_bin" pool create second fast "file:$work/pool-fast.img"
refused 3 'no pool|not found|there is no' "$convect_bin" pool status nothing
refused 3 'no vdrive|there is no' "$convect_bin" pool remove pool 99 --yes
refused 6 'add --yes' "$convect_bin" pool destroy pool
refused 4 'in use|pool' "$convect_bin" pool add pool slow "file:$work/pool-slow1.img"
refused 6 'ext4.*--force' "$convect_bin" pool add pool slow "file:$work/ext4.img"
no_pool 1 || amiss "a refused pool is there"

# --- volumes and exports ------------------------------------------------------------------------
volume() { refused "$1" "$2" "$convect_bin" volume create "${@:3}"; } # CODE PATTERN ARG...
volume 4 'already' pool/disk --size 256M
volume 1 '1 MiB to 256 TiB' pool/bad --size 1000001
volume 1 '1 MiB to 256 TiB' pool/bad --size 4096
volume 1 '1 MiB to 256 TiB' pool/bad --size 512T
volume 1 'cannot be reserved' pool/bad --size 64G --thick
volume 1 '512|4096' pool/bad --size 64M --lba 1024
volume 3 'no pool|there is no' nothing/disk --size 64M
refused 2 'size' "$convect_bin" volume create pool/bad --size wide
refused 3 'no volume|there is no|does not exist' "$convect_bin" volume show pool/nothing
[ "$(convect --json volume list pool | field 'len(d["items"])')" = 1 ] || amiss "a refused volume is there"

export_nbd disk pool/disk
convect export create tcp pool/disk nbd --listen tcp:127.0.0.1:0
port="$(convect --json export show tcp | field 'd["address"].rsplit(":", 1)[1]')"
export_refused() { refused "$1" "$2" "$convect_bin" export create bad "${@:3}"; } # CODE PATTERN ARG...
echo precious >precious
mkdir -p full
touch full/something
export_refused 4 'in use' pool/disk nbd --listen "tcp:127.0.0.1:$port"
export_refused 1 'long|bytes' pool/disk nbd --listen "unix:$long"
export_refused 1 'address|tcp:' pool/disk nbd --listen 'tcp:nowhere'
export_refused 4 'precious' pool/disk nbd --listen "unix:$work/precious"
export_refused 3 'no-such' pool/disk nbd --listen "unix:$work/no-such/a.sock"
export_refused 1 'long|bytes' pool/disk vhost-user-blk --path "$long"
export_refused 4 'precious' pool/disk vhost-user-blk --path "$work/precious"
export_refused 3 'no-such' pool/disk fuse --mount "$work/no-such"
export_refused 1 'empty' pool/disk fuse --mount "$work/full"
export_refused 3 'no volume|there is no' pool/nothing nbd --listen "unix:$work/b.sock"
refused 4 'exists|taken|already has' "$convect_bin" export create disk pool/disk nbd --listen "unix:$work/b.sock"
refused 2 'nbd' "$convect_bin" export create bad pool/disk floppy --drive a
refused 2 'listen' "$convect_bin" export create bad pool/disk nbd
refused 2 'lisden' "$convect_bin" export create bad pool/disk nbd --lisden a
refused 5 'export|busy|in use' "$convect_bin" volume delete pool/disk --yes
[ "$(convect --json export list | field 'len(d["items"])')" = 2 ] || amiss "a refused export is there"
[ "$(cat precious)" = precious ] || amiss "a file was overwritten"
[ ! -e b.sock ] || amiss "a refused export left its socket"
nbdinfo "$(uri disk)" >/dev/null

# --- a drive is taken away while it serves ------------------------------------------------------
say "a leg of a mirror is taken away: nothing is lost, and the drive is named"
# The legs that go are files of a second daemon, which is killed.
mkdir below below/files
printf 'socket = "%s/below/a.sock"\nstate_dir = "%s/below/state"\n' "$work" "$work" >below/convect.toml
env -u CONVECT_SOCKET "$convect_bin" serve --config below/convect.toml >below/out 2>below/log &
below_pid=$!
defer "kill -KILL $below_pid 2>/dev/null; umount -l '$work/below/files' 2>/dev/null"
wait_until 60 grep -q '^ready$' below/out
below() { "$convect_bin" --socket "$work/below/a.sock" "$@"; }
below pool create low fast "file:$work/low.img?size=2G"
for leg in fast slow; do
  below volume create "low/$leg" --size 512M
  below export create "$leg" "low/$leg" fuse --mount "$work/below/files"
done
convect pool create mirrored \
  fast mirror "file:$work/m-fast.img?size=512M" "file:$work/below/files/fast" \
  slow mirror "file:$work/m-slow.img?size=512M" "file:$work/below/files/slow"
convect volume create mirrored/disk --size 512M
export_nbd kept mirrored/disk
head -c 64M /dev/urandom >data.img
nbdcopy --flush data.img "$(uri kept)"
kill -KILL "$below_pid"
check_kept='
data = open("data.img", "rb").read()
for at in range(0, len(data), 1 << 20):
    assert h.pread(1 << 20, at) == data[at : at + (1 << 20)], at
h.pwrite(data[: 8 << 20], 100 << 20)
h.flush()
assert h.pread(8 << 20, 100 << 20) == data[: 8 << 20]
'
nbdsh -u "$(uri kept)" -c "$check_kept"
degraded() { convect --json pool status mirrored | field 'd["state"] + " " + " ".join(d["messages"])' | grep -i 'degraded.*below/files/fast'; }
wait_until 20 degraded
umount -l below/files || fusermount3 -uz below/files
say "the daemon starts without it, opens the pool with what is left, and names what is missing"
restart_daemon
wait_until 20 degraded
nbdsh -u "$(uri kept)" -c "$check_kept"

say "the only drive is taken away: errors, no crash, and the pool says so"
nbdcopy --flush data.img "$(uri disk)"
convect pool cool pool
truncate -s 0 pool-slow1.img
nbdsh -u "$(uri disk)" -c '
import nbd, errno
errors = 0
for at in range(0, 64 << 20, 1 << 20):
    try:
        h.pread(1 << 16, at)
    except nbd.Error as error:
        assert error.errnum == errno.EIO, error
        errors += 1
assert errors > 0
'
convect --json pool status pool | field 'sum(r["errors"] for v in d["vdrives"] for r in v["drives"])' | grep -qv '^0$'
nbdinfo "$(uri kept)" >/dev/null
[ "$wrong" = 0 ] || fail "$wrong of $cases refusals are not as they should be: $(cat amiss.log)"
say "$cases refusals, each in one line"
stop_daemon

#!/usr/bin/env bash
# PostgreSQL under pgbench on ext4 over the FUSE file: killed and recovered, with nothing lost
# that was committed; and the same again after the daemon was restarted.
# timeout: 300
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

bin="$(dirname "$(compgen -G '/usr/lib/postgresql/*/bin/pg_ctl' | sort -V | tail -n 1)")"
# The database refuses to run as root, and its user has to reach the mount point.
place="$(mktemp -d)"
chmod 755 "$place"
defer "rm -rf --one-file-system '$place'"
mkdir "$place/mnt" "$place/run"
defer "umount '$place/mnt' 2>/dev/null || umount -l '$place/mnt' 2>/dev/null"
if [ "$(id -u)" = 0 ]; then
  user=postgres
  chown postgres "$place/run"
  as() { (cd "$place" && runuser -u postgres -- "$@"); }
else
  user="$(id -un)"
  as() { (cd "$place" && "$@"); }
fi
export PGHOST="$place/run" PGDATABASE=bench
data="$place/mnt/data"

mount_disk() {
  attach_loop loop files/disk --direct-io=on
  mount "$loop" "$place/mnt"
}

unmount_disk() {
  umount "$place/mnt"
  detach_loop "$loop"
}

start_database() {
  as "$bin/pg_ctl" -D "$data" -w -t 300 -l "$place/run/log" \
    -o "-c listen_addresses='' -c unix_socket_directories=$place/run -c shared_buffers=64MB -c max_wal_size=96MB" \
    start >/dev/null || { tail -n 20 "$place/run/log"; fail "the database does not start"; }
  postmaster="$(head -n 1 "$data/postmaster.pid")"
  defer "kill -QUIT '$postmaster' 2>/dev/null; sleep 0.5"
}

# A kill of the whole database: the postmaster and every process of its own. It is stopped first:
# a process that it forks between the look and the kill would wait for the dead for ever.
kill_database() {
  local children
  kill -STOP "$postmaster"
  children="$(pgrep -P "$postmaster" || true)"
  # shellcheck disable=SC2086
  kill -KILL "$postmaster" $children 2>/dev/null || true
  wait_until 20 bash -c "! kill -0 $postmaster $(echo $children | sed 's/\([0-9]\+\)/2>\/dev\/null \&\& ! kill -0 \1/g') 2>/dev/null"
  rm -f "$data/postmaster.pid"
}

query() { as "$bin/psql" -XAtq -c "$1"; }

# Every transaction of pgbench moves one amount through four tables.
check_sums() {
  local sums
  sums="$(query "select (select sum(abalance) from pgbench_accounts) = (select coalesce(sum(delta), 0) from pgbench_history)
    and (select sum(tbalance) from pgbench_tellers) = (select coalesce(sum(delta), 0) from pgbench_history)
    and (select sum(bbalance) from pgbench_branches) = (select coalesce(sum(delta), 0) from pgbench_history)")"
  [ "$sums" = t ] || fail "the tables disagree after a recovery"
  as "$bin/pg_amcheck" --install-missing --heapallindexed bench
}

mkdir files
start_daemon
create_pool pool 768M 2G
convect volume create pool/disk --size 2G
convect export create disk pool/disk fuse --mount "$work/files"
attach_loop loop files/disk --direct-io=on
mkfs.ext4 -q -F "$loop"
detach_loop "$loop"
mount_disk
mkdir "$data"
chown "$user" "$data"
as "$bin/initdb" -D "$data" --data-checksums --auth=trust -E UTF8 >/dev/null
start_database
as "$bin/createdb" bench
as "$bin/pgbench" -i -q -s 5 bench 2>&1 | tail -n 1
query "create table committed (number int primary key)"

for round in 1 2 3; do
  say "round $round: pgbench, then a kill of the database"
  as "$bin/pgbench" -n -c 4 -T 600 bench >/dev/null 2>&1 &
  bench_pid=$!
  # Each number that is printed was committed before the next was tried.
  (for number in $(seq $((round * 100000)) $((round * 100000 + 99999))); do
    query "insert into committed values ($number)" 2>/dev/null || break
    echo "$number"
  done) >"committed-$round" &
  writer=$!
  wait_until 60 bash -c "[ \$(wc -l <committed-$round) -ge 40 ]"
  kill_database
  wait "$bench_pid" || true
  wait "$writer" || true
  start_database
  check_sums
  kept="$(query "select count(*) from committed where number / 100000 = $round")"
  [ "$kept" -ge "$(wc -l <"committed-$round")" ] || fail "committed rows are gone: $kept are left"
done

say "a snapshot under pgbench: its clone starts and is whole"
begun="$(query "select count(*) from pgbench_history")"
as "$bin/pgbench" -n -c 4 -T 5 bench >/dev/null 2>&1 &
bench_pid=$!
goes_on() { [ "$(query "select count(*) from pgbench_history")" -gt "$begun" ]; }
wait_until 20 goes_on
query "insert into committed values (1)"
convect snapshot create pool/disk@busy
query "insert into committed values (2)"
convect snapshot clone pool/disk@busy copy
wait "$bench_pid"
convect export create copy pool/copy fuse --mount "$work/files"
mkdir "$place/copy" "$place/run2"
chown "$user" "$place/run2"
attach_loop copy files/copy --direct-io=on
defer "umount '$place/copy' 2>/dev/null || umount -l '$place/copy' 2>/dev/null"
mount "$copy" "$place/copy"
rm -f "$place/copy/data/postmaster.pid"
(
  place_of_run="$place/run2" data="$place/copy/data"
  export PGHOST="$place_of_run"
  as "$bin/pg_ctl" -D "$data" -w -t 300 -l "$place_of_run/log" \
    -o "-c listen_addresses='' -c unix_socket_directories=$place_of_run -c shared_buffers=64MB" start >/dev/null ||
    { tail -n 20 "$place_of_run/log"; fail "the clone's database does not start"; }
  check_sums
  [ "$(query "select string_agg(number::text, ' ' order by number) from committed where number < 10")" = 1 ] ||
    fail "the snapshot is of another moment"
  as "$bin/pg_ctl" -D "$data" -w -m fast stop >/dev/null
  as "$bin/pg_checksums" --check -D "$data" >/dev/null
)
umount "$place/copy"
detach_loop "$copy"
convect export delete copy --yes
convect volume delete pool/copy --yes
convect snapshot delete pool/disk@busy --yes
check_sums

say "the daemon restarts beneath a stopped database"
rows="$(query "select count(*) from pgbench_history")"
as "$bin/pg_ctl" -D "$data" -w -m fast stop >/dev/null
as "$bin/pg_checksums" --check -D "$data"
unmount_disk
restart_daemon
attach_loop loop files/disk
e2fsck -fn "$loop"
detach_loop "$loop"
mount_disk
as "$bin/pg_checksums" --check -D "$data" >/dev/null
start_database
check_sums
[ "$(query "select count(*) from pgbench_history")" = "$rows" ] || fail "the history changed"
as "$bin/pg_ctl" -D "$data" -w -m fast stop >/dev/null
unmount_disk
stop_daemon

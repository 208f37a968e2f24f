#!/usr/bin/env bash
# For packages.sh: inside.sh VERSION installs that version of the package, upgrades, removes and purges it, with apt and
# dpkg; then the RPM package with rpm. It changes the system that it runs in.
set -Eeuo pipefail
trap 'echo "FAILED in inside.sh line $LINENO: $BASH_COMMAND"' ERR
[ -e /changes-are-forgotten ]
cd /mnt
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive
own_apt() {
  apt-get -y -o Dir::Etc::sourcelist=/mnt/inside.list -o Dir::Etc::sourceparts=/dev/null -o APT::Sandbox::User=root "$@"
}
echo "deb [trusted=yes] file:/mnt/unsigned stable main" >inside.list
# Convect of the running system, if there is one, is nothing to this test.
dpkg --purge convect >/dev/null 2>&1 || true
rm -rf /var/lib/convect /etc/convect /srv/convect
groupdel convect 2>/dev/null || true
own_apt update
own_apt install --no-install-recommends "convect=$1"
getent group convect
[ -d /srv/convect ]
[ "$(stat -c %a /etc/convect/chap)" = 700 ]
[ -z "$(dpkg --verify convect)" ]
echo '# mine' >>/etc/convect/convect.toml
cp -a state /var/lib/convect
ls /var/lib/convect
echo drive >/var/lib/convect/drive.img
: >/systemctl.log
own_apt install --no-install-recommends convect | tee said
grep -q 'the old version serves on until: systemctl restart convect' said
dpkg-query -W -f '${Version}\n' convect | grep -qx 99.0-1
grep -qx '# mine' /etc/convect/convect.toml
# The daemon serves on.
! grep -vE 'daemon-reload|is-active' /systemctl.log || { echo "the upgrade did more" && exit 1; }
own_apt remove convect
grep -q 'stop convect.service' /systemctl.log
[ ! -e /usr/bin/convect ]
[ -f /var/lib/convect/tokens.json ]
grep -qx '# mine' /etc/convect/convect.toml
dpkg --purge convect
[ "$(ls -A /var/lib/convect)" = drive.img ] || { ls -A /var/lib/convect && exit 1; }
for left in /etc/convect /srv/convect; do
  [ ! -e "$left" ] || { echo "$left is left" && exit 1; }
done
groupdel convect

rpm() { command rpm --force-debian --nodeps --dbpath /rpmdb "$@"; }
rpm -i first.rpm
getent group convect
rpm -V convect
[ "$(stat -c %a /etc/convect/chap)" = 700 ]
rm /etc/convect/convect.toml
rpm -V convect && { echo "a missing file was not noticed" && exit 1; }
: >/systemctl.log
rpm -e convect
grep -q 'disable --now convect.service' /systemctl.log
[ ! -e /usr/bin/convect ]

#!/usr/bin/env bash
# Builds the RPM package of the programs, with the options of stage.sh: packaging/build-rpm.sh --help.
set -Eeuo pipefail
# shellcheck source=packaging/stage.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/stage.sh"
need rpmbuild
prepare "$(target_dir)/rpm" "$@"
machine=${triple%%-*}

work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
staged=$work/staged
mkdir "$staged"
stage "$staged" usr/share/zsh/site-functions
install -D -m 644 LICENSE "$staged/usr/share/licenses/convect/LICENSE"

# Files, and the folders that are the package's own.
(
  cd "$staged"
  find . -type d \( -name convect -o -path '*/convect/*' \) -printf '%%dir /%P\n' | sort
  find . -type f -printf '/%P\n' | sort |
    sed -e 's,^/etc/.*,%config(noreplace) &,' -e 's,^/usr/share/\(doc\|man\)/.*,%doc &,' \
      -e 's,^/usr/share/licenses/.*,%license &,'
) >"$work/files"

# Archives are compressed by one thread. What rpm does to programs by itself (strip, links by build identifiers) is off.
rpmbuild -bb --quiet --target "$machine-linux" \
  --define "_topdir $work/rpmbuild" --define "_rpmdir $work/made" \
  --define "staged $staged" --define "staged_files $work/files" \
  --define "staged_version $version" --define "staged_release $release" \
  --define "staged_license $(python3 -B packaging/notices.py --expression "$triple")" \
  --define "packager ${DEBFULLNAME:-The Convect developers} <${DEBEMAIL:-convect@localhost}>" \
  --define "__os_install_post %{nil}" --define "debug_package %{nil}" --define "_build_id_links none" \
  --define "_binary_payload w12.zstdio" --define "_buildhost convect" \
  --define "use_source_date_epoch_as_buildtime 1" --define "clamp_mtime_to_source_date_epoch 1" \
  packaging/rpm/convect.spec >&2

mkdir -p "$folder"
package=$folder/convect-$version-$release.$machine.rpm
mv "$work/made/$machine/${package##*/}" "$package"
echo "$package"

# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# Sourced after common.sh. Downloads Debian packages into the cache, with a sources file and
# package lists of our own: nothing is installed and the machine's apt set-up is not changed.
# The mirrors are the ones the machine itself uses.

# The URI from which the machine takes suite $1 ("bookworm", "bookworm-security").
apt_mirror() {
	# shellcheck disable=SC2016 # $(REPO_URI) is apt's
	apt-get indextargets --format '$(RELEASE) $(REPO_URI)' 'Created-By: Packages' |
		awk -v suite="$1" '$1 == suite && !n++ { print $2 }'
}

# apt_sources SUITE...: choose where apt_get looks, and fetch the lists when they are old.
apt_sources() {
	local suite mirror sources
	APT_DIR=$CACHE/apt/$(IFS=+ && echo "$*")
	sources=$APT_DIR/sources.list
	mkdir -p "$APT_DIR/lists/partial" "$APT_DIR/cache/archives/partial" "$APT_DIR/none"
	for suite; do
		mirror=$(apt_mirror "$suite")
		[ -n "$mirror" ] || mirror=$(apt_mirror bookworm)
		[ -n "$mirror" ] || die "no mirror of Debian 12 (bookworm) in this machine's apt sources"
		echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main"
	done >"$sources"
	if [ -z "$(find "$APT_DIR/updated" -mtime -1 2>/dev/null)" ]; then
		quietly "$APT_DIR/update.log" apt_get update
		touch "$APT_DIR/updated"
	fi
}

apt_options() {
	printf '%s\n' \
		-o "Dir::Etc::SourceList=$APT_DIR/sources.list" -o "Dir::Etc::SourceParts=$APT_DIR/none" \
		-o Dir::Etc::Preferences=/dev/null -o "Dir::Etc::PreferencesParts=$APT_DIR/none" \
		-o "Dir::State::Lists=$APT_DIR/lists" -o Dir::State::status=/dev/null \
		-o "Dir::Cache=$APT_DIR/cache" -o "APT::Sandbox::User=$(id -un)" \
		-o Acquire::Retries=3
}

apt_get() {
	local -a options
	mapfile -t options < <(apt_options)
	apt-get -q "${options[@]}" "$@"
}

# The concrete packages on which package $1 depends and whose names match the regexp $2.
apt_depends() {
	local -a options
	mapfile -t options < <(apt_options)
	apt-cache "${options[@]}" depends "$1" | awk -v re="$2" '/Depends:/ && $2 ~ re { print $2 }'
}

# The names of packages that match the regexp $1, in the order of their versions.
apt_names() {
	local -a options
	mapfile -t options < <(apt_options)
	apt-cache "${options[@]}" pkgnames | awk -v re="$1" '$0 ~ re' | sort -V
}

# apt_unpack DIR PACKAGE...: download the packages and unpack them into DIR.
apt_unpack() {
	local dir=$1 deb
	shift
	mkdir -p "$dir/debs"
	(cd "$dir/debs" && quietly "$dir/download.log" apt_get download "$@")
	for deb in "$dir"/debs/*.deb; do
		dpkg -x "$deb" "$dir"
	done
	rm -r "$dir/debs"
}

# apt_unpack_root DIR PACKAGE...: the packages with all they depend on: a root to chroot into,
# as far as that goes without running any package's scripts.
apt_unpack_root() {
	local dir=$1 deb
	shift
	mkdir -p "$dir"
	apt_get clean
	quietly "$APT_DIR/install.log" apt_get install -y -d --no-install-recommends "$@"
	# base-files has the links from /bin to /usr/bin, which must be there first
	for deb in "$APT_DIR"/cache/archives/base-files_*.deb "$APT_DIR"/cache/archives/*.deb; do
		dpkg -x "$deb" "$dir"
	done
	apt_get clean
}

# apt-unpack.sh: sourced by get-postgres, get-mysql and get-mariadb. Unpacks Debian packages of another suite into a folder, as any
# user and without touching the system: apt works on lists, a cache and an (empty) package database of its own.
#
# The mirror, its proxy and its credentials are the ones that apt uses on this machine already.

say() { echo "${0##*/}: $*" >&2; }

# what is fetched here is skipped when it cannot be had: the log must say why
trap 'say "line $LINENO failed: $BASH_COMMAND"' ERR

# The stamp holds the path, because loader and library paths are written into the programs: a moved tree is fetched anew.
is_complete() { [ "$(cat "$1/.complete" 2>/dev/null)" = "$1" ]; }
mark_complete() { echo "$1" > "$1/.complete"; }

# The base URI of the Debian mirror. Without downloaded lists apt does not know the origins: then the first one it has.
find_mirror() {
	local uri
	for filter in 'Origin: Debian' 'Component: main'; do
		uri=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' "$filter" 2>/dev/null | grep -v security | head -n 1)
		[ -n "$uri" ] && break
	done
	[ -n "$uri" ] || { say "apt knows no Debian mirror on this machine"; return 1; }
	echo "$uri"
}

# apt_setup SUITE WORKDIR [deb-src]: afterwards APT holds the options for apt-get and apt-cache.
apt_setup() {
	local suite=$1 work=$2 kind=${3:-deb} mirror keyring=/usr/share/keyrings/debian-archive-keyring.gpg
	mirror=$(find_mirror)
	mkdir -p "$work"/lists/partial "$work"/cache/archives/partial "$work"/debs
	{
		echo "$kind [signed-by=$keyring] $mirror $suite main"
		# the suite's security updates too, where this machine knows them (that is, for its own release)
		apt-get indextargets --format "$kind [signed-by=$keyring] \$(REPO_URI) \$(CODENAME) main" 'Created-By: Packages' |
			grep " $suite-security main" | sort -u || true
	} > "$work/sources.list"
	APT=(-oDir::Etc::SourceList="$work/sources.list" -oDir::Etc::SourceParts=/dev/null -oDir::State::Lists="$work/lists"
		-oDir::Cache="$work/cache" -oAcquire::Languages=none -oDebug::NoLocking=1 -oAPT::Sandbox::User=
		# No package counts as installed: else libraries that the (older) system has would be left out of the closure.
		-oDir::State::status=/dev/null)
	apt-get "${APT[@]}" -qq update
}

# library_closure PACKAGE...: the packages themselves and every library that they need, directly or not. Only
# libraries: what maintainer scripts would want (perl, debconf, systemd) is not run here; LLVM, Perl and Python are
# needed by PostgreSQL's optional modules only.
library_closure() {
	{
		printf '%s\n' "$@"
		apt-cache "${APT[@]}" depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces \
			--no-enhances "$@" | grep -E '^(lib[a-z0-9.+-]+|zlib1g)$' | grep -Ev '^lib(llvm|perl|python|db5|gdbm|gcc-[0-9]|c-bin|c-dev)'
	} | sort -u
}

# unpack WORKDIR ROOT PACKAGE...: download, and extract what lies under /usr/lib, /usr/share (named parts) and the like.
unpack() {
	local work=$1 root=$2 deb
	shift 2
	mkdir -p "$root"
	(cd "$work/debs" && apt-get "${APT[@]}" -qq download "$@")
	for deb in "$work"/debs/*.deb; do
		dpkg-deb --fsys-tarfile "$deb" | tar x -C "$root" --no-same-owner --exclude='./usr/share/doc*' \
			--exclude='./usr/share/man*' --exclude='./usr/share/locale*' --exclude='./etc*' --exclude='./var*'
	done
	rm -rf "$work"
}

# The dynamic loader that was unpacked into ROOT.
loader_of() {
	local found
	found=$(find "$1/usr/lib" "$1/lib" -maxdepth 2 -name 'ld-linux*.so.*' 2>/dev/null | grep -- '-linux-gnu' | head -n 1)
	[ -n "$found" ] || { say "no dynamic loader was unpacked below $1"; return 1; }
	echo "$found"
}

# The folders of ROOT with libraries, as a search path: packages of older suites still split them over /lib and /usr/lib.
library_path() {
	local folder path=
	for folder in "$1"/usr/lib/*-linux-gnu "$1"/lib/*-linux-gnu; do
		if [ -d "$folder" ]; then path=${path:+$path:}$folder; fi
	done
	[ -n "$path" ] || { say "no libraries were unpacked below $1"; return 1; }
	echo "$path"
}

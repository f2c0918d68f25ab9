# Shell functions of tools/check, tools/demo and other scripts, which install packages of Debian 12
# and configure a build folder. They install only missing packages, so a machine that has all
# packages needs neither root nor a network.

# packages for building
slc_packages=(
    meson ninja-build gcc g++ libc6-dev pkg-config libxxhash-dev liblz4-dev libjansson-dev
    libarchive-dev libzip-dev zlib1g-dev libbz2-dev liblzma-dev libzstd-dev libopenblas-dev liblapacke-dev liburing-dev libhwloc-dev
)
# packages for tests, man pages, reference implementations and static analysis
slc_test_packages=(libcunit1-dev scdoc python3-numpy python3-scipy python3-sparse python3-lz4 python3-xxhash xz-utils tmux clang-tidy cppcheck verilator)

# slc_install PACKAGE..: installs missing packages.
slc_install() {
    local missing=() package as=()

    if ! command -v dpkg-query > /dev/null || ! command -v apt-get > /dev/null; then
        echo "This is not a Debian system. Install these packages or their equivalents:" >&2
        echo "  $*" >&2
        return 0
    fi
    for package in "$@"; do
        if [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2> /dev/null)" != installed ]; then
            missing+=("$package")
        fi
    done
    [ ${#missing[@]} -eq 0 ] && return 0
    if [ "$(id -u)" -ne 0 ]; then
        if ! command -v sudo > /dev/null; then
            echo "These packages are missing, and installing them needs root or sudo: ${missing[*]}" >&2
            return 1
        fi
        as=(sudo)
    fi
    echo "Installing ${missing[*]}"
    "${as[@]}" apt-get update -qq &&
        "${as[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
            --no-install-recommends "${missing[@]}" > /dev/null
}

# slc_configure FOLDER MESON-ARGUMENT..: configures a build folder. If FOLDER is configured with
# these arguments, possibly followed by others, it is only updated. If it lacks the last of these
# arguments, it is reconfigured. Otherwise (another compiler, other arguments) it is configured from
# scratch.
slc_configure() {
    local folder=$1 wanted have stamp again=()
    shift
    wanted="${CC:-cc} $*"
    stamp="$folder/slc-configured"
    if [ -f "$folder/build.ninja" ]; then
        have=$(cat "$stamp" 2> /dev/null)
        if [ "${have#"$wanted"}" != "$have" ]; then
            # This updates the targets if a meson.build has changed.
            ninja -C "$folder" build.ninja > "$folder.log" 2>&1 || {
                cat "$folder.log"
                return 1
            }
            rm -f "$folder.log"
            return 0
        fi
        if [ -n "$have" ] && [ "${wanted#"$have"}" != "$wanted" ]; then
            again=(--reconfigure)
        fi
    fi
    [ ${#again[@]} -eq 0 ] && [ -d "$folder/meson-private" ] && rm -rf "$folder"
    meson setup "${again[@]}" "$folder" "$@" > "$folder.log" 2>&1 || {
        cat "$folder.log"
        return 1
    }
    rm -f "$folder.log"
    echo "$wanted" > "$stamp"
}

# Sourced by scripts/demo and scripts/test: system packages, a Python, a virtual environment.
# Each part is checked by what it is needed for, so that nothing is installed where all is there.

# How python-qpid-proton is compiled. Its functions find each other by symbols that a program could replace, unless the
# compiler is told that none does. Of flags that are given setuptools makes all that there are: without -DNDEBUG proton
# has its assertions then, and ends the process where one of them fails.
PROTON_CFLAGS="-O3 -DNDEBUG -fno-semantic-interposition"

export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 DEBIAN_FRONTEND=noninteractive
unset PYTHONDONTWRITEBYTECODE  # else each of hundreds of processes compiles all that it imports

say() { printf '== %s\n' "$*" >&2; }

fail() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

# Print the oldest and the newest version of Python that pyproject.toml names.
outermost_versions() {
    sed -n 's/.*"Programming Language :: Python :: \(3\.[0-9]*\)".*/\1/p' pyproject.toml | sort -V | sed -n '1p;$p'
}

# find_version VERSION: print a Python of that version, by its name, or its path where pyenv keeps it.
find_version() {
    local python
    for python in python3 "python$1" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$1".*[0-9]/bin/python; do
        if [ "$(version_of "$python")" = "$1" ]; then
            echo "$python"
            return
        fi
    done
    return 1
}

version_of() { "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null || true; }

# Print the name of a Python from 3.11 on; $PYTHON, when set, is the only one looked at.
find_python() {
    local python
    for python in ${PYTHON:-python3 python3.13 python3.12 python3.11}; do
        if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$python"
            return
        fi
    done
    return 1
}

has_header() { "$1" -c 'import os, sysconfig as s; os.stat(os.path.join(s.get_path("include"), "Python.h"))' 2>/dev/null; }

has_venv() { "$1" -c 'import ensurepip, venv' 2>/dev/null; }

# Print the Debian packages that are missing. python-qpid-proton is compiled on installation; without libssl-dev,
# libsasl2-dev and pkg-config it compiles too, but knows neither TLS nor the SASL mechanisms of Cyrus. With Cyrus, even
# ANONYMOUS is a module of its own.
missing_packages() {
    local python
    if ! python=$(find_python); then
        echo python3 python3-dev python3-venv
    else
        has_header "$python" || echo python3-dev
        has_venv "$python" || echo python3-venv
    fi
    command -v gcc >/dev/null && command -v g++ >/dev/null || echo build-essential
    if command -v pkg-config >/dev/null; then
        pkg-config --exists openssl || echo libssl-dev
        pkg-config --exists libsasl2 || echo libsasl2-dev
    else
        echo pkg-config libssl-dev libsasl2-dev
    fi
    compgen -G '/usr/lib*/sasl2/libanonymous.so' >/dev/null || compgen -G '/usr/lib/*/sasl2/libanonymous.so' >/dev/null ||
        echo libsasl2-modules
    local tool
    for tool in "$@"; do
        case $tool in
            node)
                command -v node >/dev/null || echo nodejs
                command -v npm >/dev/null || echo npm
                ;;
            java) java -version >/dev/null 2>&1 || echo default-jre-headless ;;
            kerberos) missing_kerberos ;;
            chromium) command -v chromium >/dev/null || echo chromium ;;
            *) fail "no tool $tool" ;;
        esac
    done
}

# What gssapi is compiled with, and a KDC and clients' side of Cyrus for its tests.
missing_kerberos() {
    pkg-config --exists krb5-gssapi 2>/dev/null || echo libkrb5-dev
    [ -x /usr/sbin/krb5kdc ] || echo krb5-kdc
    [ -x /usr/sbin/kadmin.local ] || echo krb5-admin-server
    compgen -G '/usr/lib*/sasl2/libgssapiv2.so' >/dev/null || compgen -G '/usr/lib/*/sasl2/libgssapiv2.so' >/dev/null ||
        echo libsasl2-modules-gssapi-mit
}

# install_packages [node] [java] [chromium] [kerberos]
install_packages() {
    local packages
    packages=$(missing_packages "$@" | tr '\n' ' ')
    [ -n "${packages// /}" ] || return 0
    command -v apt-get >/dev/null || fail "install what Debian calls: $packages"
    say "Installing $packages"
    as_root apt-get update -qq
    # shellcheck disable=SC2086  # several words
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $packages >&2
    packages=$(missing_packages "$@" | tr '\n' ' ')
    [ -z "${packages// /}" ] || fail "still missing after installation: $packages"
}

# make_venv NAME: print the folder of the virtual environment NAME for the Python found.
make_venv() {
    local python venv
    python=$(find_python) || fail "no Python 3.11 or newer; set PYTHON to one"
    venv="$PWD/.venv/$1-$(version_of "$python")"
    "$venv/bin/python" -m pip --version >/dev/null 2>&1 || "$python" -m venv --clear "$venv"
    echo "$venv"
}

# wheel_digest PYTHON: print a digest of all that the wheel comes from: sources, flags, pinned versions, Python.
wheel_digest() {
    {
        "$1" -c 'import sys; print(sys.version)'
        echo "${AMQP_MESH_CFLAGS-} ${AMQP_MESH_PROFILE-}"
        find pyproject.toml setup.py MANIFEST.in README.md LICENSE NOTICE requirements/dev.txt scripts/build-wheel router \
            mesh_config -name __pycache__ -prune -o -type f ! -name '*.so' ! -name '*.c' -print0 |
            LC_ALL=C sort -z | xargs -0 sha256sum
    } | sha256sum | cut -d ' ' -f 1
}

# install_wheel VENV EXTRAS: build the wheel and install it into VENV, unless what is there was built from the same.
install_wheel() {
    local made
    made="$(wheel_digest "$1/bin/python") $2"
    if [ "$(cat "$1/made-from" 2>/dev/null)" = "$made" ] && "$1/bin/amqp-mesh" --version >/dev/null 2>&1; then
        say "Nothing has changed that goes into the wheel: ${1##*/} is used as it is"
        return
    fi
    rm -f "$1/made-from"
    say "Building the wheel (its hot path is compiled) and installing it into ${1#"$PWD/"}"
    scripts/build-wheel "$1/bin/python" "$1/wheel"
    "$1/bin/pip" -q uninstall -y amqp-mesh 2>/dev/null # an older build may have the same version
    CFLAGS=$PROTON_CFLAGS "$1/bin/pip" install -q --use-pep517 -c requirements/dev.txt "$(echo "$1"/wheel/*.whl)[$2]"
    echo "$made" >"$1/made-from"
}

# proton_is_complete PYTHON: whether its python-qpid-proton knows TLS and the mechanisms of Cyrus.
proton_is_complete() {
    "$1" -c 'import proton, sys; sys.exit(not (proton.SSL.present() and proton.SASL.extended()))'
}

# proton_has_assertions PYTHON: whether a failed one of them would end the process.
proton_has_assertions() {
    "$1" -I -c 'import sys; from router.binding.library import has_assertions; sys.exit(not has_assertions())'
}

# check_proton VENV: compile python-qpid-proton anew if it knows neither TLS nor the mechanisms of Cyrus, or has its
# assertions. pip keeps what it once compiled, also when that was before libssl-dev and libsasl2-dev were there, or with
# other flags.
check_proton() {
    proton_is_complete "$1/bin/python" && ! proton_has_assertions "$1/bin/python" && return
    say "Compiling python-qpid-proton with TLS and SASL, and without assertions"
    local version
    version=$(version_of "$1/bin/python")
    # What is there would be found again, now and the next time.
    "$1/bin/pip" -q cache remove "python_qpid_proton-*-cp${version/./}-*" || true
    CFLAGS=$PROTON_CFLAGS "$1/bin/pip" install -q --force-reinstall --no-deps -c requirements/dev.txt python-qpid-proton
    proton_is_complete "$1/bin/python" || fail "python-qpid-proton was compiled without TLS or SASL"
}

# install_for_tests VENV: what scripts/test tests, and tests with. Compiled in two thirds of the time of the usual -O2;
# what that takes for granted about types is taken for granted too. Python compiles what is imported when it is: that is a
# small part of all that is installed.
install_for_tests() {
    PIP_COMPILE=0 AMQP_MESH_CFLAGS=${AMQP_MESH_CFLAGS--O1 -g0 -fstrict-aliasing} install_wheel "$1" connect,demo,http,kerberos,test
    check_proton "$1"
}

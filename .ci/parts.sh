# What .ci/run and .ci/full consist of: parts, the servers and packages that they need, and the
# table at the end. Sourced by both, in the root of the project.

PYTHON=${PYTHON:-python3}
export PYTHON
TOX=.venv/bin/tox

answers() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

wait_for() { # PORT
    for _ in $(seq 60); do
        if answers "$1"; then return 0; fi
        sleep 1
    done
    echo "nothing answers on 127.0.0.1 port $1" >&2
    return 1
}

install_package() { # WHAT_IT_BRINGS PACKAGE
    if command -v "$1" >/dev/null || test -e "$1"; then return 0; fi
    apt-get update -qq
    # Another program on this machine may be installing something as well.
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq -o DPkg::Lock::Timeout=300 "$2"
}

start_postgresql() {
    if ! answers 5432; then
        install_package pg_ctlcluster postgresql
        pg_ctlcluster --skip-systemctl-redirect "$(ls /etc/postgresql | sort -V | tail -1)" main start || true
    fi
    wait_for 5432
}

start_mariadb() {
    if ! answers 3306; then
        install_package /usr/sbin/mariadbd mariadb-server
        start-stop-daemon --start --oknodo --background --exec /usr/sbin/mariadbd
    fi
    wait_for 3306
}

start_rabbitmq() {
    if ! answers 5672; then
        install_package rabbitmq-server rabbitmq-server
        answers 5672 || rabbitmq-server -detached
    fi
    wait_for 5672
}

install_node() {
    install_package node nodejs
    install_package npm npm
}

# Chromium, with fonts for all characters that names may have.
install_browser() {
    install_node
    install_package chromium chromium
    install_package /usr/share/fonts/truetype/dejavu/DejaVuSans.ttf fonts-dejavu-core
    install_package /usr/share/fonts/truetype/noto/NotoColorEmoji.ttf fonts-noto-color-emoji
}

# The gate, the quick parts first.
part_lint() { $TOX -e lint; }
part_types() { $TOX -e types; }
part_docs() { $TOX -e docs; }
part_test() { make test; }
part_postgresql() { start_postgresql && $TOX -e postgresql; }
part_mysql() { start_mariadb && $TOX -e mysql; }
part_osc() {
    $TOX -e clients -- tests/clients/test_client_suites.py tests/clients/test_osc_placement.py tests/clients/test_readme.py
}
part_console_units() { install_node && $TOX -e console-units; }
part_console_walk() { install_browser && $TOX -e console -- tests/console/test_walk.py; }
GATE="lint types docs test postgresql mysql osc console_units console_walk"

# Everything else.
part_explanations() { $TOX -e explanations; }
part_lengthy() { $TOX -e lengthy; }
part_failures() { $TOX -e failures; }
part_stress() {
    start_postgresql
    start_mariadb
    for database in sqlite postgresql mysql; do
        PLACEMENT_TEST_DATABASE=$database $TOX -e stress
    done
}
part_galera() {
    start_mariadb
    install_package rsync rsync
    install_package /usr/lib/galera/libgalera_smm.so galera-4
    $TOX -e galera
}
part_proxy() {
    install_package nginx nginx-light
    install_package haproxy haproxy
    $TOX -e proxy
}
part_clients() { start_rabbitmq && $TOX -e clients; }
part_baremetal() { $TOX -e baremetal; }
part_ironic() { start_rabbitmq && $TOX -e ironic; }
part_keystone() { $TOX -e keystone; }
part_reservations() { start_rabbitmq && $TOX -e reservations; }
part_blazar() { start_mariadb && $TOX -e blazar; }
part_nova() { start_rabbitmq && $TOX -e nova; }
part_openapi() { $TOX -e openapi; }
part_kubernetes() { $TOX -e kubernetes; }
part_wheel() { $TOX -e wheel; }
part_sbom() { $TOX -e sbom; }
part_alerts() { install_package promtool prometheus && $TOX -e alerts; }
part_console() { install_browser && $TOX -e console; }
REST="explanations lengthy failures stress galera proxy clients baremetal ironic keystone reservations blazar nova
    openapi kubernetes wheel sbom alerts console"

# Run parts one after the other, go on after one has failed, and end with a table of results
# and times and with the closing lines of the test runners. Fails if a part has failed.
run_parts() { # NAME...
    local logs failed=0 part begin status
    logs=$(mktemp -d)
    make "$TOX" >"$logs/setup" 2>&1 || { cat "$logs/setup"; return 1; }
    # Installs the environments in a tenth of the time.
    .venv/bin/python -m pip install --quiet tox-uv
    for part in "$@"; do
        printf '\n== %s (after %d:%02d)\n' "$part" $((SECONDS / 60)) $((SECONDS % 60))
        begin=$SECONDS
        (
            set -e
            "part_$part"
        ) 2>&1 </dev/null | tee "$logs/$part.log"
        status=${PIPESTATUS[0]}
        test "$status" = 0 || failed=1
        test "$status" = 0 && result=passed || result=FAILED
        printf '%-14s %s %3d:%02d\n' "$part" "$result" $(((SECONDS - begin) / 60)) $(((SECONDS - begin) % 60)) >>"$logs/table"
    done
    printf '\n'
    cat "$logs/table"
    printf 'together              %3d:%02d\n' $((SECONDS / 60)) $((SECONDS % 60))
    for part in "$@"; do
        grep -hE '^=+ .*(passed|failed|error).* in [0-9.]+s.*=+$|^[0-9]+ (passed|failed).* in [0-9.]+s' "$logs/$part.log" | tail -3 || true
    done
    rm -rf "$logs"
    return "$failed"
}

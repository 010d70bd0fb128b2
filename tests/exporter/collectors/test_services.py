"""Rules of the token bucket filter: only while it runs, and not all of very many. What they show is in test_written."""

FOLDER = "sys/kernel/debug/lustre/ost/OSS/ost_io"
POLICIES = "\nregular_requests:\n  - name: tbf jobid\n    state: {}\n    fallback: no\n    queued: 7\n    active: 3\n"
RULES = "regular_requests:\nCPT 0:\n"


def test_rules_are_not_read_while_the_filter_is_stopped(grow, exporter) -> None:
    for state, shown in (("stopped", False), ("started", True)):
        root = grow({f"{FOLDER}/nrs_policies": POLICIES.format(state),
                     f"{FOLDER}/nrs_tbf_rule": f"{RULES}default * 10000, ref 0\n"})  # fmt: skip
        assert (b"lustre_service_tbf" in exporter(root).scrape("services")) is shown


def test_of_very_many_rules_the_first_are_shown(grow, exporter) -> None:
    many = "".join(f"r{number} jobid={{{'x' * 900}}} 5, ref 0\n" for number in range(5000))
    running = exporter(grow({f"{FOLDER}/nrs_policies": POLICIES.format("started"),
                             f"{FOLDER}/nrs_tbf_rule": RULES + many}))  # fmt: skip
    lines = [line for line in running.scrape("services").splitlines() if line.startswith(b"lustre_service_tbf_rule_r")]
    assert len(lines) == 200
    assert max(map(len, lines)) < 500

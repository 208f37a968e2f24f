#!/usr/bin/env python3
"""Judges a log of iscsi-test-cu: any failure or skip that is not excused below is an error, and so is
an excuse that is not needed any more."""

import re
import sys

# What a disk cannot mean, or this one does not: test, reason.
SKIPPED = {
    "PreventAllow.Simple": "nothing can be taken out",
    "PreventAllow.Eject": "nothing can be taken out",
    "PreventAllow.ITNexusLoss": "nothing can be taken out",
    "PreventAllow.Logout": "nothing can be taken out",
    "PreventAllow.WarmReset": "nothing can be taken out",
    "PreventAllow.ColdReset": "nothing can be taken out",
    "PreventAllow.LUNReset": "nothing can be taken out",
    "PreventAllow.2ITNexuses": "nothing can be taken out",
    "StartStopUnit.Simple": "nothing can be taken out",
    "StartStopUnit.PwrCnd": "nothing can be taken out",
    "StartStopUnit.NoLoej": "nothing can be taken out",
    "NoMedia.NoMediaSBC": "nothing can be taken out",
    "ReadOnly.ReadOnlySBC": "hosts may write here; it runs against the export that is read-only",
    "Sanitize.CryptoErase": "there is no key to throw away",
    "Sanitize.CryptoEraseReserved": "there is no key to throw away",
    "Sanitize.Readonly": "its part about CRYPTO ERASE alone",
    "Sanitize.Reservations": "its part about CRYPTO ERASE alone",
    "ReportSupportedOpcodes.OneCommand": "the suite calls INVALID FIELD IN CDB, which it asks for, a skip",
    "ExtendedCopy.ValidTgtDescr": "its part about a bit that SPC-4 has taken out",
    "CompareAndWrite.InvalidDataOutSize": "a physical block has one logical block there",
    "WriteSame10.InvalidDataOutSize": "a physical block has one logical block there",
    "WriteSame10.UnmapUnaligned": "a physical block has one logical block there",
    "WriteSame16.InvalidDataOutSize": "a physical block has one logical block there",
    "WriteSame16.UnmapUnaligned": "a physical block has one logical block there",
    "MultipathIO.Simple": "one portal is given; both are in the run with two",
    "MultipathIO.Reset": "one portal is given; both are in the run with two",
    "MultipathIO.CompareAndWrite": "one portal is given; both are in the run with two",
    "MultipathIO.CompareAndWriteAsync": "one portal is given; both are in the run with two",
}

# Where the suite is at fault.
FAILED = {
    "WriteSame10.UnmapUntilEnd": "it sends a block of 0xff with UNMAP and expects zeroes: SBC-3 5.46 has "
    "the block written, as what is unmapped here reads as zeroes",
    "WriteAtomic16.Simple": "it writes up to 256 blocks at once, whatever MAXIMUM ATOMIC TRANSFER LENGTH says",
    "GetLBAStatus.UnmapSingle": "it asks at one logical block past a physical one, and expects the answer to "
    "begin at the next physical block",
    "Sanitize.Reset": "with two paths the test before it leaves its RESERVE(6) on the second, so that its SANITIZE "
    "is a conflict; it passes with one",
}


def results(text):
    """Each test with whether it failed and whether it skipped something."""
    suite, test, found = None, None, {}
    for line in text.splitlines():
        if match := re.match(r"\s*Suite: (\S+)", line):
            suite, test = match.group(1), None
        elif match := re.match(r"\s*Test: (\S+) \.\.\.(.*)", line):
            test = f"{suite}.{match.group(1)}"
            found[test] = [False, False]
            line = match.group(2)
        if test is None:
            continue
        if re.match(r"\s+\d+\. \S+\.c:\d+", line) or line.strip() == "FAILED":
            found[test][0] = True
        if "[SKIPPED]" in line:
            found[test][1] = True
    return found


def main():
    log, excused = sys.argv[1], set(sys.argv[2:])
    text = open(log, errors="replace").read()
    found = results(text)
    wrong = []
    if "Run Summary" not in text:
        wrong.append("the suite did not come to its end")
    failed = {test for test, (fails, _) in found.items() if fails}
    skipped = {test for test, (fails, skips) in found.items() if skips and not fails}
    wrong += [f"{test} failed" for test in sorted(failed) if test not in FAILED or test not in excused]
    wrong += [f"{test} is excused and did not fail" for test in sorted(excused - failed)]
    wrong += [f"{test} skipped something" for test in sorted(skipped) if test not in SKIPPED]
    passed = len(found) - len(failed) - len(skipped)
    print(f"-- {log}: {len(found)} tests, {passed} passed, {len(failed)} failed, {len(skipped)} skipped")
    for test in sorted(failed & excused):
        print(f"   {test} fails: {FAILED[test]}")
    for line in wrong:
        print(f"FAILED: {log}: {line}")
    sys.exit(1 if wrong else 0)


main()

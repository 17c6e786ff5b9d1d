#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Pages that map the rows of a specification to tests (tests/ROWS.md and the like) are true.

A row is `| ID | TEST, TEST | NOTE |`; TEST is FILE::NAME, NAME a pytest function or a Criterion test
of that file; "-" for none, then the note has to say why. Ids of one letter and two digits (C01) are
part of their tests' names. COMPLETE says which ids a page may not leave out.
Prints one line for each fault; exit 1 when there is one.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = ["tests/ROWS.md", "tests/INFORMER_ROWS.md"]
# client-go's tests that an informer, a cache or a work queue has to answer to.
CLIENT_GO = """
TestRealFIFO_basic, TestRealFIFO_replaceWithDeleteDeltaIn,
TestRealFIFOW_ReplaceMakesDeletionsForObjectsOnlyInQueue, TestRealFIFO_addUpdate,
TestRealFIFO_transformer, TestRealFIFO_enqueueingNoLister, TestRealFIFO_enqueueingWithLister,
TestRealFIFO_addReplace, TestRealFIFO_ResyncNonExisting, TestRealFIFO_Resync,
TestRealFIFO_DeleteExistingNonPropagated, TestRealFIFO_ReplaceMakesDeletions,
TestRealFIFO_ReplaceMakesDeletionsReplaced, TestRealFIFO_UpdateResyncRace,
TestRealFIFO_HasSyncedCorrectOnDeletion, TestRealFIFO_detectLineJumpers, TestRealFIFO_HasSynced,
TestRealFIFO_PopShouldUnblockWhenClosed, TestRealFIFO_PopMultipleDeltaInBatch,
TestRealFIFO_ReplaceAtomic, TestRealFIFO_ReplaceAtomicPop, TestRealFIFO_ResyncAtomic,
TestHammerController, TestUpdate, TestTransformingInformer, TestTransformingInformerRace,
TestProcessDeltasInBatch, TestReplaceEvents, TestResetWatch, TestStoreResourceVersion, TestIndexer,
TestListenerResyncPeriods, TestListenerResyncPeriodsDelayed, TestResyncCheckPeriod,
TestSharedInformerWatchDisruption, TestSharedInformerErrorHandling, TestSharedInformerTransformer,
TestSharedInformerRemoveHandler, TestSharedInformerRemoveForeignHandler,
TestSharedInformerMultipleRegistration, TestRemovingRemovedSharedInformer,
TestSharedInformerHandlerAbuse, TestStateSharedInformer, TestAddOnStoppedSharedInformer,
TestRemoveOnStoppedSharedInformer, TestRemoveWhileActive, TestAddWhileActive, TestShutdown,
TestRemoveEventHandler_AsynchronousPanic, TestRemoveEventHandler_SynchronousShutdown,
TestShutDownEventHandler_Lifecycles, TestThreadSafeStoreDeleteRemovesEmptySetsFromIndex,
TestThreadSafeStoreAddKeepsNonEmptySetPostDeleteFromIndex,
TestThreadSafeStoreIndexingFunctionsWithMultipleValues, TestThreadSafeStoreRV, TestCache,
TestCacheWithTransformer, TestFIFOCache, TestUndeltaStore, TestIndex,
TestCacheTransactionShouldIndexErrors, TestGetIndexFuncValues, TestMultiIndexKeys, TestListAll,
TestWaitFor, TestBasicLogic (synctrack), TestSingleFile (synctrack), TestSingleFileCounting (synctrack),
TestAsyncLocking (synctrack), TestRCNumber (fake_controller_source), TestResetWatch
(fake_controller_source), TestListPager_List, TestBasic, TestAddWhileProcessing, TestLen, TestReinsert,
TestCollapse, TestCollapseWhileProcessing, TestQueueDrainageUsingShutDownWithDrain,
TestNoQueueDrainageUsingShutDown, TestForceQueueShutdownUsingShutDown,
TestQueueDrainageUsingShutDownWithDrainWithDirtyItem, TestSimpleQueue, TestDeduping,
TestAddTwoFireEarly, TestCopyShifting, TestItemExponentialFailureRateLimiter,
TestItemExponentialFailureRateLimiterOverFlow, TestItemFastSlowRateLimiter, TestMaxOfRateLimiter,
TestWithMaxWaitRateLimiter, TestRateLimitingQueue, TestMetrics
"""
COMPLETE = {"tests/ROWS.md": [f"C{number:02}" for number in range(1, 70)] + [f"K{number:02}" for number in range(1, 27)],
            "tests/INFORMER_ROWS.md": [" ".join(row.split()) for row in CLIENT_GO.split(",")]}


def tests_of(path, cache={}):
    """Names of the tests in a file; None when it is not there."""
    if path not in cache:
        file = ROOT / path
        pattern = r"^def (test_\w+)\(" if path.endswith(".py") else r"^Test\(\w+, (\w+)"
        cache[path] = set(re.findall(pattern, file.read_text(), re.M)) if file.is_file() else None
    return cache[path]


def check_row(row, tests, note):
    if tests == "-":
        return [] if note else ["no test and no reason"]
    faults = []
    for test in re.split(r",\s*", tests):
        path, separator, name = test.strip("`").partition("::")
        known = tests_of(path) if separator else None
        if known is None:
            faults.append(f"'{test}': no such file")
        elif name not in known:
            faults.append(f"'{test}': no such test")
        elif re.fullmatch(r"[A-Z]\d\d", row) and not re.search(rf"(^|_){row.lower()}_", name):
            faults.append(f"'{test}': the name does not hold {row.lower()}")
    return faults


def check_page(page):
    seen = {}
    for number, line in enumerate((ROOT / page).read_text().splitlines(), 1):
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
        if not line.startswith("|") or len(cells) != 3 or cells[0] == "id" or set(cells[0]) <= set("-:"):
            continue
        faults = check_row(*cells)
        if cells[0] in seen:
            faults.append(f"is in line {seen[cells[0]]} too")
        seen[cells[0]] = number
        yield from (f"{page}:{number}: {cells[0]}: {fault}" for fault in faults)
    yield from (f"{page}: {row} is missing" for row in COMPLETE.get(page, []) if row not in seen)


if __name__ == "__main__":
    found = [fault for page in PAGES if (ROOT / page).is_file() for fault in check_page(page)]
    print(*found, sep="\n", end="\n" if found else "")
    sys.exit(bool(found))

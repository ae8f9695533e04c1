package results

// A fault is one of ours that was found and mended, with the test that replays it.
type fault struct{ what, test, file string }

// trackRecord are those that made the library promise too much, or lose or leave
// something. Who mends another one adds it.
var trackRecord = []fault{
	{
		"A writer had released in time. A reader of its own lost the lock before the server had answered, and the writer was told so, too.",
		"TestAWriterThatHasReleasedLosesNothingWithItsReaders", "tests/locks/readwrite_nest_test.go",
	},
	{
		"A release found that its hold had been lost, but its caller had left. Nobody heard of the loss: no line in the log, no event.",
		"TestALossIsToldThatAReleaseFindsAfterItsContext", "internal/lock/engine_test.go",
	},
	{
		"A failover brought back a place in a fair lock's queue. After a Detach its client left it there, and all behind it waited for ever.",
		"TestAPlaceThatComesBackKeepsNobodyWaitingAfterADetach", "tests/locks/fairlock_leave_test.go",
	},
	{
		"A caller left while its request was in flight. The lock then passed within the process without end, and no other process got it.",
		"TestALockThatCameTooLateForItsCallerIsNotPassedOnForEver", "tests/handoff/starve_test.go",
	},
	{
		"A lock with a token passed within its process without end if each section took less than 5 ms, and no other process got it.",
		"TestProcessesTakeTurns", "tests/handoff/handoff_test.go",
	},
	{
		"After a suspend of the machine no renewal counted, and a hold was lost that Redis had prolonged.",
		"TestARenewalAfterASuspendCounts", "internal/renew/window_test.go",
	},
	{
		"A lock was freed at the moment when its window ended. Somebody else had it a millisecond after the holder was told.",
		"TestTheMarginIsTheHoldersToStop", "tests/locks/lock_loss_test.go",
	},
	{
		"A hold that had ended by its own window was forgotten. The release of another one freed the lock in its margin.",
		"TestTheMarginOfOneHoldIsNotGivenAwayByAnother", "tests/locks/lock_loss_test.go",
	},
	{
		"An extension that was still under way raised the TTL of the next holder.",
		"TestALongTTLThatMayComeIsNotPassedOn", "tests/handoff/handoff_test.go",
	},
	{
		"A renewal that hung took half of the time of a lock that a release had given.",
		"TestAGivenLockOutlivesRenewalsWithoutAnAnswer", "tests/locks/fairlock_given_test.go",
	},
	{
		"A lock that a release had given was lost in an outage of four to six seconds, which any other hold survives.",
		"TestAGivenLockIsSoonKeptLikeAnyOther", "tests/locks/fairlock_given_test.go",
	},
	{
		"To enter a lock again and again put its renewal off until it was lost.",
		"TestBriefReentriesDoNotPutOffTheRenewalOfAGivenLock", "tests/locks/fairlock_given_test.go",
	},
	{
		"A client took an id of its own for that of a late request, and released a lock of another type under which it worked.",
		"TestAStrayReadIsNotReleasedWithWhoReadsBesideIt", "tests/clients/client_mixedtypes_test.go",
	},
	{
		"The retry of a counting request wrote nothing. So on Valkey 8 replicas counted that did not have it.",
		"TestARequestThatIsSentAgainWritesSomething", "tests/locks/acks_leave_test.go",
	},
	{
		"A script that the server refused in the middle lost a permit for ever.",
		"TestAPermitScriptThatIsRefusedHalfWayLosesNoPermit", "tests/synchronizers/semaphore_halfway_test.go",
	},
	{
		"A take that the server refused in the middle left a lock that nobody held.",
		"TestATakeThatIsRefusedHalfWayLeavesNothing", "tests/clients/client_badinput_test.go",
	},
	{
		"A server without memory took back no permits.",
		"TestAServerWithoutMemoryTakesBack", "tests/clients/client_oom_test.go",
	},
	{
		"A lost reply let a forced release go on before the holder was told.",
		"TestALostReplyDoesNotKeepAHolderFromBeingTold", "tests/locks/lock_force_test.go",
	},
	{
		"Two names with the same side keys shared a session.",
		"TestTwinsThatCountShareNoSession", "tests/synchronizers/latch_session_twins_test.go",
	},
	{
		"A process that kept releasing permits never acquired one beside an idle subscriber.",
		"TestReleasesDoNotKeepTheirProcessFromAcquiring", "tests/handoff/starve_test.go",
	},
	{
		"A latch below zero could never be set again.",
		"TestALatchBelowZeroCanBeSetAgain", "tests/synchronizers/latch_test.go",
	},
	{
		"A text in the place of a semaphore's number was taken for no permits.",
		"TestATextIsNotTakenForNoPermits", "tests/synchronizers/semaphore_test.go",
	},
	{
		"A forced release deleted a hash of another program.",
		"TestForceReleaseDeletesNoOtherProgramsHash", "tests/clients/client_info_test.go",
	},
	{
		"A rate limiter wrote its rate into a lock of the same name, and took its TTL away.",
		"TestRateLimiterLeavesOtherHashesAlone", "tests/synchronizers/ratelimiter_others_test.go",
	},
	{
		"A take in the last millisecond of a limiter left its state for ever.",
		"TestALimiterThatEndsInUseLeavesNothing", "tests/synchronizers/ratelimiter_expire_test.go",
	},
	{
		"A semaphore that was made anew still counted what an earlier one had given.",
		"TestPermitsThatAreAddedAnewAreAll", "tests/synchronizers/semaphore_expire_test.go",
	},
	{
		"A stored rate of 0 was taken for no news. Callers waited for ever.",
		"TestARateOfNothingKeepsNobodyWaiting", "tests/synchronizers/ratelimiter_queue_test.go",
	},
	{
		"An answer from before a rate was raised refused a caller who came later.",
		"TestAnAnswerFromBeforeARaiseRefusesNobodyWhoCameLater", "tests/synchronizers/ratelimiter_queue_test.go",
	},
	{
		"A subscription stayed after Close. One in 1,200 runs showed it.",
		"TestNoSpareListensAfterClose", "internal/lock/fair/spare_test.go",
	},
	{
		"A waiter of Redisson behind a long wait in a fair lock's queue slept for good.",
		"TestAWaiterOfRedissonBehindALongWaitIsNotForgotten", "tests/locks/fairlock_dead_test.go",
	},
	{
		"With another wait time-out a Java service and redlatch moved each other's places apart.",
		"TestAnotherFairLockWaitTimeoutIsHonoured", "tests/locks/fairlock_timeout_test.go",
	},
	{
		"A proxy refused renewals of several slots together. 358 of 450 holds were lost in a minute.",
		"TestOneEndpointInFrontOfShardsLosesNothing", "tests/topologies/slots_test.go",
	},
	{
		"A client stayed at a server that had become a replica.",
		"TestNothingIsLostWhenANameMoves", "tests/topologies/name_test.go",
	},
	{
		"While a slot moved, the waiters of a fair lock lost their places.",
		"TestNobodyLosesItsPlaceWhileASlotStaysMarked", "tests/topologies/reshard_fair_test.go",
	},
	{
		"Late members of a RedLock did not join it. The next server that was lost ended it.",
		"TestWhoAnswersLateJoinsARedLockWhoseCallersContextHasEnded", "tests/locks/multilock_redlock_test.go",
	},
	{
		"The terms of an election began with 1 again after a loss of data.",
		"TestTermsRiseWhenTheServerHasLostItsData", "tests/synchronizers/election_test.go",
	},
	{
		"With a short `Config.TokenTTL` the number of an election's term became 0 while somebody led.",
		"TestATermHasItsNumberForAsLongAsItLasts", "tests/synchronizers/election_observe_test.go",
	},
	{
		"A hold lost its fencing token when its lock was passed on.",
		"TestATokenOutlastsTheHoldWhoeverHasTheLockNext", "tests/locks/fencedlock_test.go",
	},
	{
		"A context made before an Extend lost its own time-out.",
		"TestExtendLeavesTheTimeoutsOfChildrenAlone", "tests/locks/lock_extend_test.go",
	},
	{
		"The holder of a lock whose name is no UTF-8 was never asked to let go.",
		"TestAHolderIsAskedToLetGoWhateverTheLocksNameIs", "tests/locks/lock_force_test.go",
	},
	{
		"A caller of a spin lock slept over the end of its wait. 13 of 20 calls failed at a free lock.",
		"TestWhoSpinsTriesOnceMoreBeforeItsWaitIsOver", "tests/locks/spinlock_test.go",
	},
	{
		"A caller that left a barrier and came again was counted twice, and passed it alone.",
		"TestWhoComesToABarrierAgainIsNotTakenForTwo", "tests/synchronizers/latch_barrier_test.go",
	},
	{
		"With another codec than Redisson's a group lock excluded nobody, and nothing said so.",
		"TestAGroupWhoseCodecIsNotOursIsRefused", "tests/locks/grouplock_test.go",
	},
	{
		"A lease of thousands of years had a client ask Redis without a pause.",
		"TestALeaseOfAQuarterOfAMillionYearsIsWaitedForAsAnyOther", "tests/locks/lock_lease_test.go",
	},
	{
		"The id that keeps a lock for its MinHold could be extended, which locked all out.",
		"TestTheIDThatKeepsALockIsReleasedAndNotExtended", "tests/locks/lock_atleast_test.go",
	},
	{
		"Close returned before a caller had given back what it got too late.",
		"TestCloseWaitsForCallersInTheDriver", "internal/request/sender_test.go",
	},
	{
		"Blocking commands of the program filled the pool of go-redis. Holds were lost, and the error named another cause.",
		"TestTheErrorNamesAPoolThatBlockingCommandsFill", "tests/goredis/pool_test.go",
	},
	{
		"A request that was sent again wrote nothing. Redis 8 and Valkey then asked no replica, and the acquisition counted unacknowledged.",
		"TestNothingIsAcknowledgedThatNoReplicaHas", "tests/sim/real/wait_test.go",
	},
	{
		"A process kept the permits that another one had left it. Where goroutines passed theirs on, no other process got any.",
		"TestAProcessThatKeepsItsPermitsKeepsNobodyElseOut", "tests/synchronizers/semaphore_share_test.go",
	},
	{
		"A holder that was asked to let go while its client waited in Close was not told. It trusted a lock that had been released by force.",
		"TestAClientThatClosesStillHearsThatItIsToLetGo", "tests/clients/shutdown_test.go",
	},
	{
		"A caller that had left did not hear that the endpoint before a cluster counts hash slots. Its client sent renewals that could only be refused.",
		"TestAClientLearnsThatSlotsCountFromWhatNobodyWaitsFor", "internal/request/slots_test.go",
	},
	{
		"A reader that only tried was refused by what a reader had heard that was just leaving. The lock could be free by then.",
		"TestAReaderIsNotRefusedByWhatOneHeardThatLeaves", "internal/lock/holds_test.go",
	},
	{
		"Subscriptions stayed at a server that had become a replica. It had answered a script before the address moved.",
		"TestAnAnswerOfAReplicaKeepsNoSubscriptionThere", "internal/adapter/breaks_test.go",
	},
}

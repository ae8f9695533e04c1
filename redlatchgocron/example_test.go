package redlatchgocron_test

import (
	"context"
	"log"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/election"
	"github.com/redlatch/redlatch/redlatchgocron"
)

var driverOfProgram driver.Redis // redlatchgoredis.Use(...), or another

// Each run of a job is somebody's, of all processes with this schedule.
func ExampleNewLocker() {
	client, err := redlatch.New(driverOfProgram, redlatch.Config{})
	if err != nil {
		log.Fatal(err)
	}
	locker := redlatchgocron.NewLocker(client, redlatchgocron.Options{Prefix: "jobs:", MinHold: time.Minute})
	scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
	if err != nil {
		log.Fatal(err)
	}
	if _, err := scheduler.NewJob(gocron.CronJob("0 3 * * *", false), gocron.NewTask(report), gocron.WithName("report")); err != nil {
		log.Fatal(err)
	}
	scheduler.Start()
}

// One process runs all jobs.
func ExampleNewElector() {
	client, err := redlatch.New(driverOfProgram, redlatch.Config{})
	if err != nil {
		log.Fatal(err)
	}
	elector := redlatchgocron.NewElector(election.New(client, "scheduler"))
	go func() { log.Print(elector.Run(context.Background())) }()

	scheduler, err := gocron.NewScheduler(gocron.WithDistributedElector(elector))
	if err != nil {
		log.Fatal(err)
	}
	if _, err := scheduler.NewJob(gocron.DurationJob(time.Minute), gocron.NewTask(report)); err != nil {
		log.Fatal(err)
	}
	scheduler.Start()
}

func report() {}

// A job that stops when its lock is lost, before another process runs it.
func ExampleLocker_Task() {
	client, err := redlatch.New(driverOfProgram, redlatch.Config{})
	if err != nil {
		log.Fatal(err)
	}
	locker := redlatchgocron.NewLocker(client, redlatchgocron.Options{Prefix: "jobs:", MinHold: time.Minute})
	scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
	if err != nil {
		log.Fatal(err)
	}
	if _, err := scheduler.NewJob(gocron.CronJob("0 3 * * *", false), locker.Task(export), gocron.WithName("export")); err != nil {
		log.Fatal(err)
	}
	scheduler.Start()
}

// export does its work until ctx ends.
func export(ctx context.Context) error { return ctx.Err() }

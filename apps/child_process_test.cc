#include "child_process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace strata::apps {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

Result<ChildOutput> run_shell(const std::string& script, milliseconds limit = seconds(60)) {
  return run_child({"/bin/sh", "-c", script}, limit);
}

Result<std::string> shell(const std::string& script, milliseconds limit = seconds(60)) {
  STRATA_ASSIGN(ChildOutput output, run_shell(script, limit));
  return std::move(output.text);
}

// A named pipe, whose reader knows when no process has it open for writing any more.
class Fifo {
 public:
  Fifo() : path_(fmt::format("{}/child_process_{}", ::testing::TempDir(), ::getpid())) {
    EXPECT_EQ(::mkfifo(path_.c_str(), 0600), 0);
    descriptor_ = ::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  }
  ~Fifo() {
    ::close(descriptor_);
    ::unlink(path_.c_str());
  }
  const std::string& path() const { return path_; }
  // Waits for a byte, or for the end: 1 or 0; something else after a minute.
  ssize_t next() const {
    pollfd state{descriptor_, POLLIN, 0};
    ::poll(&state, 1, 60'000);
    char byte = 0;
    return ::read(descriptor_, &byte, 1);
  }

 private:
  std::string path_;
  int descriptor_ = -1;
};

TEST(ChildProcess, GivesAllThatWasWrittenToStandardOutput) {
  const auto text = shell("echo loud >&2; yes line | head -c 200000");
  ASSERT_TRUE(text.ok()) << text.status().message();
  EXPECT_EQ(text->size(), 200000u);
  EXPECT_TRUE(text->starts_with("line\nline\n"));
}

TEST(ChildProcess, ReadsNothingOfOurInput) { EXPECT_EQ(*shell("cat"), ""); }

TEST(ChildProcess, SaysHowItFailedAndWhatItSaid) {
  EXPECT_THAT(shell("echo no such model >&2; exit 3").status().message(),
              HasSubstr("exit code 3; it said: no such model"));
  EXPECT_THAT(shell("kill -9 $$").status().message(), HasSubstr("signal 9"));
  EXPECT_THAT(run_child({"/nowhere/bench"}, seconds(60)).status().message(),
              HasSubstr("cannot start /nowhere/bench: No such file"));
}

TEST(ChildProcess, IsKilledWhenItTakesTooLongOrWritesTooMuch) {
  EXPECT_THAT(shell("exec sleep 1000", milliseconds(50)).status().message(),
              HasSubstr("took longer than 0.05 s"));
  EXPECT_THAT(shell("exec yes").status().message(), HasSubstr("wrote more than"));
  EXPECT_THAT(shell("exec >&-; exec sleep 1000", milliseconds(50)).status().message(),
              HasSubstr("took longer"));
}

TEST(ChildProcess, KeepsTheEndOfWhatWasWrittenToStandardError) {
  const auto output = run_shell("yes | head -c 100000 >&2; echo end >&2");
  ASSERT_TRUE(output.ok()) << output.status().message();
  EXPECT_EQ(output->errors.size(), 65536u);
  EXPECT_TRUE(output->errors.ends_with("end\n"));
}

TEST(ChildProcess, MayEndWithAnyCodeWhereThatIsAllowed) {
  const auto output =
      run_child({"/bin/sh", "-c", "echo help; exit 1"}, seconds(60), ExitCodes::kAny);
  ASSERT_TRUE(output.ok()) << output.status().message();
  EXPECT_EQ(output->text, "help\n");
}

TEST(ChildProcess, TakesWhatItStartedWithIt) {
  for (const char* end : {"exec yes", "exit 3", "exit 0"}) {
    const Fifo fifo;
    const std::string start = fmt::format("{{ sleep 1000 & echo >&3; }} 3>{}; ", fifo.path());
    (void)shell(start + end);
    EXPECT_EQ(fifo.next(), 1);
    EXPECT_EQ(fifo.next(), 0) << end;
  }
}

TEST(ChildProcess, EndsWithThisProgramHoweverThatEnds) {
  for (const int signal : {SIGKILL, SIGINT, SIGTERM}) {
    const Fifo fifo;
    const pid_t program = ::fork();
    if (program == 0) {
      (void)shell(fmt::format("exec 3>{}; echo >&3; sleep 1000; :", fifo.path()), seconds(1000));
      ::_exit(0);
    }
    EXPECT_EQ(fifo.next(), 1);
    ::kill(program, signal);
    ::waitpid(program, nullptr, 0);
    EXPECT_EQ(fifo.next(), 0) << signal;
  }
}

TEST(ChildProcess, IsNotWaitedForBeyondItsEnd) {
  const auto text = shell("sleep 5 & echo done");
  ASSERT_TRUE(text.ok()) << text.status().message();
  EXPECT_EQ(*text, "done\n");
}

TEST(BackgroundChild, RunsBesideUntilItIsLetGo) {
  Fifo fifo;
  auto child = BackgroundChild::start(
      {"/bin/sh", "-c",
       "exec 3>" + fifo.path() +
           "; echo x >&3; yes | head -c 300000 >&2; echo ready >&2; sleep 99"});
  ASSERT_TRUE(child.ok()) << child.status().message();
  const auto said = (*child)->wait_for("ready", seconds(60));
  ASSERT_TRUE(said.ok()) << said.status().message();
  EXPECT_THAT((*child)->wait_for("never", milliseconds(50)).status().message(),
              HasSubstr("took longer"));
  EXPECT_EQ(fifo.next(), 1);
  EXPECT_EQ(fifo.next(), 1);
  child->reset();
  EXPECT_EQ(fifo.next(), 0);
}

TEST(BackgroundChild, SaysWhatItSaidWhenItEnds) {
  const auto child = BackgroundChild::start({"/bin/sh", "-c", "echo no luck >&2"});
  ASSERT_TRUE(child.ok()) << child.status().message();
  EXPECT_THAT((*child)->wait_for("ready", seconds(60)).status().message(),
              HasSubstr("has ended; it said: no luck"));
}

}  // namespace
}  // namespace strata::apps

#include "child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/printable.h"

namespace strata::apps {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostOutputBytes = std::size_t{4} << 20;
constexpr std::size_t kErrorTailBytes = 400;
constexpr std::chrono::milliseconds kTick{100};  // between looks whether it has ended

// A pipe that is read here without waiting and written by a child.
class Pipe {
 public:
  Pipe() = default;
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  Status open() {
    if (::pipe2(ends_.data(), O_CLOEXEC) != 0 || ::fcntl(ends_[0], F_SETFL, O_NONBLOCK) != 0)
      return io_error("cannot make a pipe: {}", std::strerror(errno));
    return {};
  }
  int reading() const { return ends_[0]; }
  int writing() const { return ends_[1]; }
  void close_writing() { close_end(1); }

  // Appends what is there, up to `limit` bytes in all; true while more may come.
  bool read_into(std::string& text, std::size_t limit) {
    std::array<char, 65536> block;
    while (ends_[0] >= 0) {
      const ssize_t got = ::read(ends_[0], block.data(), block.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && errno == EAGAIN) return true;
      if (got <= 0) break;
      text.append(block.data(), static_cast<std::size_t>(got));
      if (text.size() > limit) return true;
    }
    close_end(0);
    return false;
  }

 private:
  void close_end(std::size_t end) {
    if (ends_[end] >= 0) ::close(std::exchange(ends_[end], -1));
  }
  std::array<int, 2> ends_ = {-1, -1};
};

class Child {
 public:
  explicit Child(std::string name) : name_(std::move(name)) {}
  ~Child() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  Status start(const std::vector<std::string>& arguments);
  Result<std::string> wait(std::chrono::milliseconds limit);

 private:
  // Takes what it wrote so far, of its errors the end.
  void read_all();
  bool has_ended(int& how);
  Status judge(int how) const;
  std::string said() const;

  std::string name_;
  pid_t pid_ = -1;
  Pipe out_;
  Pipe errors_;
  std::string text_;
  std::string error_text_;
};

Status Child::start(const std::vector<std::string>& arguments) {
  STRATA_TRY(out_.open());
  STRATA_TRY(errors_.open());
  std::vector<char*> words;
  for (const std::string& argument : arguments)
    words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out_.writing(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, errors_.writing(), STDERR_FILENO);
  const int error = ::posix_spawn(&pid_, words.front(), &actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    pid_ = -1;
    return io_error("cannot start {}: {}", name_, std::strerror(error));
  }
  out_.close_writing();
  errors_.close_writing();
  return {};
}

void Child::read_all() {
  out_.read_into(text_, kMostOutputBytes);
  std::string more;
  errors_.read_into(more, kMostOutputBytes);
  error_text_ += more;
  if (error_text_.size() > kErrorTailBytes)
    error_text_.erase(0, error_text_.size() - kErrorTailBytes);
}

bool Child::has_ended(int& how) {
  const pid_t ended = ::waitpid(pid_, &how, WNOHANG);
  if (ended != pid_) return false;
  pid_ = -1;
  return true;
}

std::string Child::said() const {
  const auto end = error_text_.find_last_not_of(" \n");
  if (end == std::string::npos) return {};
  return fmt::format("; it said: {}",
                     printable(std::string_view(error_text_).substr(0, end + 1), kErrorTailBytes));
}

Status Child::judge(int how) const {
  if (WIFSIGNALED(how))
    return io_error("{} was ended by signal {}{}", name_, WTERMSIG(how), said());
  if (WEXITSTATUS(how) != 0)
    return io_error("{} failed with exit code {}{}", name_, WEXITSTATUS(how), said());
  return {};
}

Result<std::string> Child::wait(std::chrono::milliseconds limit) {
  const auto deadline = Clock::now() + limit;
  while (true) {
    std::array<pollfd, 2> pipes = {pollfd{out_.reading(), POLLIN, 0},
                                   pollfd{errors_.reading(), POLLIN, 0}};
    ::poll(pipes.data(), pipes.size(), static_cast<int>(kTick.count()));
    int how = 0;
    const bool ended = has_ended(how);  // before reading, so that nothing it wrote is missed
    read_all();
    if (text_.size() > kMostOutputBytes)
      return corrupt("{} wrote more than {} bytes", name_, kMostOutputBytes);
    if (ended) {
      STRATA_TRY(judge(how));
      return std::move(text_);
    }
    if (Clock::now() >= deadline)
      return io_error("{} took longer than {} s{}", name_,
                      std::chrono::duration<double>(limit).count(), said());
  }
}

}  // namespace

Result<std::string> run_child(const std::vector<std::string>& arguments,
                              std::chrono::milliseconds limit) {
  Child child(printable(arguments.front(), 200));
  STRATA_TRY(child.start(arguments));
  return child.wait(limit);
}

}  // namespace strata::apps

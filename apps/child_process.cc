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
#include <mutex>
#include <thread>

#include "base/printable.h"

namespace strata::apps {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostOutputBytes = std::size_t{4} << 20;
constexpr std::size_t kErrorTailBytes = std::size_t{64} << 10;
constexpr std::size_t kQuotedBytes = 400;        // of the errors, in ours
constexpr std::chrono::milliseconds kTick{100};  // between looks whether it has ended

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
    if (::pipe2(ends_.data(), O_CLOEXEC) == 0) return {};
    return io_error("cannot make a pipe: {}", std::strerror(errno));
  }
  int reading() const { return ends_[0]; }
  int writing() const { return ends_[1]; }
  void close_writing() { close_end(1); }

  void read_without_waiting() { (void)::fcntl(ends_[0], F_SETFL, O_NONBLOCK); }

  // Appends what is there, up to `limit` bytes in all; true while more may come. REQUIRES: reading
  // does not wait.
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

// Starts `arguments` in the process group `group`, or in one of its own where that is 0.
Result<pid_t> start(const std::vector<std::string>& arguments, pid_t group,
                    const posix_spawn_file_actions_t& files) {
  std::vector<char*> words;
  for (const std::string& argument : arguments)
    words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, group);
  pid_t pid = -1;
  const int error = ::posix_spawn(&pid, words.front(), &files, &attributes, words.data(), environ);
  posix_spawnattr_destroy(&attributes);
  if (error != 0)
    return io_error("cannot start {}: {}", printable(arguments.front(), 200), std::strerror(error));
  return pid;
}

class FileActions {
 public:
  FileActions() { posix_spawn_file_actions_init(&actions_); }
  ~FileActions() { posix_spawn_file_actions_destroy(&actions_); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;

  FileActions& null(int descriptor) {
    posix_spawn_file_actions_addopen(&actions_, descriptor, "/dev/null", O_RDWR, 0);
    return *this;
  }
  FileActions& use(int from, int descriptor) {
    posix_spawn_file_actions_adddup2(&actions_, from, descriptor);
    return *this;
  }
  const posix_spawn_file_actions_t& get() const { return actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

// A process group that ends with this object and with this program, also where nobody can clean up:
// its leader waits for the end of a pipe whose other end is here, and then kills the group.
class ProcessGroup {
 public:
  ProcessGroup() = default;
  ~ProcessGroup() {
    if (leader_ <= 0) return;
    ::kill(-leader_, SIGKILL);
    ::waitpid(leader_, nullptr, 0);
  }
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  Status open() {
    STRATA_TRY(life_.open());
    FileActions files;
    files.use(life_.reading(), STDIN_FILENO).null(STDOUT_FILENO).null(STDERR_FILENO);
    STRATA_ASSIGN(leader_, start({"/bin/sh", "-c", "read -r _; kill -9 0"}, 0, files.get()));
    return {};
  }
  pid_t id() const { return leader_; }

 private:
  Pipe life_;
  pid_t leader_ = -1;
};

class Child {
 public:
  explicit Child(std::string name) : name_(std::move(name)) {}
  ~Child() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  Status start(const std::vector<std::string>& arguments);
  Result<ChildOutput> wait(std::chrono::milliseconds limit, ExitCodes allowed);

  // Takes what it wrote so far, of its errors the end.
  void read_all();
  bool has_ended(int& how);
  ChildOutput& output() { return output_; }

 private:
  Status judge(int how, ExitCodes allowed) const;
  std::string said() const;

  std::string name_;
  ProcessGroup group_;
  pid_t pid_ = -1;
  Pipe out_;
  Pipe errors_;
  ChildOutput output_;
};

Status Child::start(const std::vector<std::string>& arguments) {
  STRATA_TRY(group_.open());
  for (Pipe* const pipe : {&out_, &errors_}) {
    STRATA_TRY(pipe->open());
    pipe->read_without_waiting();
  }
  FileActions files;
  files.null(STDIN_FILENO).use(out_.writing(), STDOUT_FILENO).use(errors_.writing(), STDERR_FILENO);
  STRATA_ASSIGN(pid_, apps::start(arguments, group_.id(), files.get()));
  out_.close_writing();
  errors_.close_writing();
  return {};
}

void Child::read_all() {
  out_.read_into(output_.text, kMostOutputBytes);
  std::string more;
  errors_.read_into(more, kMostOutputBytes);
  output_.errors += more;
  if (output_.errors.size() > kErrorTailBytes)
    output_.errors.erase(0, output_.errors.size() - kErrorTailBytes);
}

bool Child::has_ended(int& how) {
  const pid_t ended = ::waitpid(pid_, &how, WNOHANG);
  if (ended != pid_) return false;
  pid_ = -1;
  return true;
}

std::string Child::said() const {
  std::string_view text = output_.errors;
  text = text.substr(0, text.find_last_not_of(" \n") + 1);
  if (text.empty()) return {};
  text.remove_prefix(text.size() - std::min(text.size(), kQuotedBytes));
  return fmt::format("; it said: {}", printable(text, kQuotedBytes));
}

Status Child::judge(int how, ExitCodes allowed) const {
  if (WIFSIGNALED(how))
    return io_error("{} was ended by signal {}{}", name_, WTERMSIG(how), said());
  if (WEXITSTATUS(how) != 0 && allowed == ExitCodes::kZero)
    return io_error("{} failed with exit code {}{}", name_, WEXITSTATUS(how), said());
  return {};
}

Result<ChildOutput> Child::wait(std::chrono::milliseconds limit, ExitCodes allowed) {
  const auto deadline = Clock::now() + limit;
  while (true) {
    std::array<pollfd, 2> pipes = {pollfd{out_.reading(), POLLIN, 0},
                                   pollfd{errors_.reading(), POLLIN, 0}};
    ::poll(pipes.data(), pipes.size(), static_cast<int>(kTick.count()));
    int how = 0;
    const bool ended = has_ended(how);  // before reading, so that nothing it wrote is missed
    read_all();
    if (output_.text.size() > kMostOutputBytes)
      return corrupt("{} wrote more than {} bytes", name_, kMostOutputBytes);
    if (ended) {
      STRATA_TRY(judge(how, allowed));
      return std::move(output_);
    }
    if (Clock::now() >= deadline)
      return io_error("{} took longer than {} s{}", name_,
                      std::chrono::duration<double>(limit).count(), said());
  }
}

}  // namespace

Result<ChildOutput> run_child(const std::vector<std::string>& arguments,
                              std::chrono::milliseconds limit, ExitCodes allowed) {
  Child child(printable(arguments.front(), 200));
  STRATA_TRY(child.start(arguments));
  return child.wait(limit, allowed);
}

class BackgroundChild::Impl {
 public:
  explicit Impl(const std::string& name) : name_(name), child_(name) {}

  Status start(const std::vector<std::string>& arguments) {
    STRATA_TRY(child_.start(arguments));
    // A full pipe would stop it.
    reader_ = std::jthread([this](const std::stop_token& stop) {
      for (; !stop.stop_requested(); std::this_thread::sleep_for(kTick)) read();
    });
    return {};
  }

  Result<std::string> wait_for(std::string_view text, std::chrono::milliseconds limit) {
    for (const auto deadline = Clock::now() + limit; Clock::now() < deadline;
         std::this_thread::sleep_for(kTick)) {
      const bool ended = read();
      const std::lock_guard lock(mutex_);
      const std::string& errors = child_.output().errors;
      if (errors.find(text) != std::string::npos) return errors;
      if (ended)
        return io_error("{} has ended; it said: {}", name_, printable(errors, kQuotedBytes));
    }
    return io_error("{} took longer than {} s", name_,
                    std::chrono::duration<double>(limit).count());
  }

 private:
  // Whether it has ended.
  bool read() {
    const std::lock_guard lock(mutex_);
    int how = 0;
    ended_ = ended_ || child_.has_ended(how);
    child_.read_all();
    child_.output().text.clear();
    return ended_;
  }

  const std::string name_;
  std::mutex mutex_;
  Child child_;
  bool ended_ = false;
  std::jthread reader_;
};

BackgroundChild::BackgroundChild(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
BackgroundChild::~BackgroundChild() = default;

Result<std::unique_ptr<BackgroundChild>> BackgroundChild::start(
    const std::vector<std::string>& arguments) {
  auto impl = std::make_unique<Impl>(printable(arguments.front(), 200));
  STRATA_TRY(impl->start(arguments));
  return std::unique_ptr<BackgroundChild>(new BackgroundChild(std::move(impl)));
}

Result<std::string> BackgroundChild::wait_for(std::string_view text,
                                              std::chrono::milliseconds limit) {
  return impl_->wait_for(text, limit);
}

}  // namespace strata::apps

#include "run_interrupts.h"

namespace strata::apps {

Interrupts::Interrupts() {
  sigemptyset(&signals_);
  sigaddset(&signals_, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  watcher_ = std::thread([this] { watch(); });
}

Interrupts::~Interrupts() {
  ending_ = true;
  pthread_kill(watcher_.native_handle(), SIGINT);
  watcher_.join();
  sigset_t pending;
  int signal = 0;
  if (sigpending(&pending) == 0 && sigismember(&pending, SIGINT) == 1) sigwait(&signals_, &signal);
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void Interrupts::watch() {
  for (int signal = 0; sigwait(&signals_, &signal) == 0 && !ending_;) {
    if (!pressed_.exchange(true)) continue;
    std::signal(SIGINT, SIG_DFL);
    pthread_sigmask(SIG_UNBLOCK, &signals_, nullptr);
    (void)std::raise(SIGINT);
  }
}

}  // namespace strata::apps

// Ctrl-C as something to ask for, instead of a signal that ends the program.
#pragma once

#include <atomic>
#include <csignal>
#include <thread>

namespace strata::apps {

// While it lives, the first Ctrl-C sets a flag; the next one ends the program as it does by
// default, whatever the program is at, unless the first was forgotten meanwhile. REQUIRES: made
// before other threads are, whose signal mask it sets.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  bool pressed() const { return pressed_; }
  void forget() { pressed_ = false; }

 private:
  void watch();

  sigset_t signals_;
  sigset_t before_;
  std::atomic<bool> pressed_ = false;
  std::atomic<bool> ending_ = false;
  std::thread watcher_;
};

}  // namespace strata::apps

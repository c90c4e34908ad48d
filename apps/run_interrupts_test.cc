#include "run_interrupts.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

namespace strata::apps {
namespace {

void press(const Interrupts& interrupts) {
  kill(getpid(), SIGINT);
  while (!interrupts.pressed()) std::this_thread::yield();
}

TEST(Interrupts, TheFirstIsNotedAndTheSecondEndsTheProgram) {
  EXPECT_EXIT(
      {
        const Interrupts interrupts;
        press(interrupts);
        kill(getpid(), SIGINT);
        for (;;) pause();
      },
      ::testing::KilledBySignal(SIGINT), "");
}

TEST(Interrupts, AForgottenOneIsNoFirst) {
  EXPECT_EXIT(
      {
        Interrupts interrupts;
        for (int i = 0; i < 3; ++i) {
          press(interrupts);
          interrupts.forget();
        }
        std::exit(interrupts.pressed() ? 1 : 0);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST(Interrupts, AfterwardsTheSignalEndsTheProgramAgain) {
  EXPECT_EXIT(
      {
        {
          const Interrupts interrupts;
          press(interrupts);
        }
        kill(getpid(), SIGINT);
        for (;;) pause();
      },
      ::testing::KilledBySignal(SIGINT), "");
}

}  // namespace
}  // namespace strata::apps

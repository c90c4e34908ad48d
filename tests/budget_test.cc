// The law of the budget: the process's peak memory stays within what the plan promised. A program
// of its own, since the peak is the process's.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <future>

#include "base/memory_ledger.h"
#include "engine/engine.h"
#include "probe/machine.h"
#include "tests/model_fixture.h"
#include "text/template/template.h"

namespace strata {
namespace {

class Waiter : public Sink {
 public:
  void on_token(std::int32_t, const ChosenToken&) override {}
  void on_finish(std::int32_t, FinishReason, const Status& status) override {
    done_.set_value(status);
  }
  Status wait() { return done_.get_future().get(); }

 private:
  std::promise<Status> done_;
};

// Of the templates that a file may bring, one that takes most memory until it is stopped.
Status render_greedily() {
  const auto greedy = jinja::Template::parse("{{ ('ab ' * 2000000).split() | length }}", {});
  return greedy.ok() ? greedy->render({}, {}).status() : greedy.status();
}

TEST(BudgetLaw, PeakMemoryStaysWithinThePlan) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path("model.gguf");
  // 100 MiB of weights, so that a copy too many would show. Written by a child: its peak is its
  // own.
  const pid_t child = fork();
  if (child == 0) {
    const auto status =
        testing::write_tiny_model(path, {4, 1792, 14, 7, 3072, 3072, 2048, FormatId::Q8_0, false});
    _exit(status.ok() ? 0 : 1);
  }
  int exit_status = 1;
  ASSERT_EQ(waitpid(child, &exit_status, 0), child);
  ASSERT_EQ(exit_status, 0);

  auto engine = Engine::load(path, {.threads = 2, .context = 512, .sequences = 2}, {});
  ASSERT_TRUE(engine.ok()) << engine.status().message();
  const PlacementPlan plan = (*engine)->plan();
  ASSERT_GT(plan.weights, 80 * kMiB);
  std::vector<std::shared_ptr<Waiter>> waiters;
  for (int i = 0; i < 2; ++i) {
    Request request;
    for (int t = 0; t < 500; ++t) request.tokens.push_back((t * 7 + i) % 3072);
    request.max_tokens = 8;
    waiters.push_back(std::make_shared<Waiter>());
    ASSERT_TRUE((*engine)->submit(std::move(request), waiters.back()).ok());
  }
  for (const auto& waiter : waiters) EXPECT_TRUE(waiter->wait().ok());
  // The promise is worth little if it is far above the need.
  const Bytes usual = peak_resident_bytes();
  EXPECT_GE(usual + usual / 2, plan.total());
  EXPECT_EQ(render_greedily().code(), StatusCode::kResourceExhausted);
  std::printf("peak %s, with a greedy template %s, of %s\n", human_bytes(usual).c_str(),
              human_bytes(peak_resident_bytes()).c_str(), human_bytes(plan.total()).c_str());
  EXPECT_LE(peak_resident_bytes(), plan.total());
}

}  // namespace
}  // namespace strata

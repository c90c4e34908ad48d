#include "serve/models.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <future>
#include <map>

#include "tests/shared_data.h"

namespace strata::serve {
namespace {

using strata::testing::reference_path;
using ::testing::HasSubstr;

constexpr Bytes kPlenty = kGiB;

ModelFile file(const std::string& name, const std::string& path) {
  ModelFile file;
  file.name = name;
  file.path = path;
  return file;
}

ModelsOptions options(Bytes memory = kPlenty) {
  ModelsOptions options;
  options.files = {file("Alpha", reference_path("llama") + ".gguf"),
                   file("beta:latest", reference_path("llama") + ".gguf"),
                   file("broken", "/nowhere/at/all.gguf")};
  options.engine.memory = memory;
  options.engine.context = 4096;
  options.engine.step_rows = 4096;  // of activations, to be larger than the process grows by itself
  options.engine.threads = 1;
  options.engine.program = options.resident = [] { return Bytes{0}; };  // sanitizers take much
  options.keep_alive = kForever;
  options.sampling = [](const Metadata&, std::int32_t) { return SamplingDefaults(); };
  return options;
}

using Lease = std::shared_ptr<ModelLease>;

Answer<Lease> acquire(Models& models, const std::string& name,
                      std::optional<KeepAlive> keep_alive = std::nullopt) {
  std::promise<Answer<Lease>> promise;
  models.acquire(name, keep_alive,
                 [&](Answer<Lease> answer) { promise.set_value(std::move(answer)); });
  return promise.get_future().get();
}

using Waiting = std::future<Answer<Lease>>;

Waiting ask(Models& models, const std::string& name, Models::Ticket ticket = 0,
            std::optional<KeepAlive> keep_alive = std::nullopt) {
  auto promise = std::make_shared<std::promise<Answer<Lease>>>();
  models.acquire(
      name, keep_alive, [promise](Answer<Lease> answer) { promise->set_value(std::move(answer)); },
      ticket);
  return promise->get_future();
}

bool is_there(const Waiting& waiting) {
  return waiting.wait_for(std::chrono::milliseconds(0)) == std::future_status::ready;
}

ModelState state_of(Models& models, const std::string& name) { return models.find(name)->state; }

bool eventually(const std::function<bool()>& condition) {
  for (int i = 0; i < 20'000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

class ModelsTest : public ::testing::Test {
 protected:
  void SetUp() override { STRATA_REQUIRE_REFERENCE("llama"); }
};

TEST_F(ModelsTest, AreFoundByTheNamesThatClientsUse) {
  Models models(options());
  for (const char* const name : {"Alpha", "alpha", "ALPHA:latest", "alp"})
    EXPECT_EQ(models.find(name)->file.name, "Alpha") << name;
  for (const char* const name : {"beta", "beta:latest", "Beta"})
    EXPECT_EQ(models.find(name)->file.name, "beta:latest") << name;
  EXPECT_FALSE(models.find("b").has_value());  // two begin so
  EXPECT_FALSE(models.find("").has_value());
  EXPECT_FALSE(models.find("gamma").has_value());
  EXPECT_EQ(acquire(models, "gamma").status().http_status, 404);
  EXPECT_EQ(acquire(models, "gamma").status().message,
            "there is no model 'gamma' here; there are: Alpha, beta:latest, broken");
  EXPECT_EQ(acquire(models, "").status().http_status, 400);
  EXPECT_EQ(acquire(models, "").status().field, "model");
}

TEST_F(ModelsTest, AreNamedToWhoKnowsThemNotUnlessTheyAreMany) {
  ModelsOptions many = options();
  many.files.clear();
  for (int i = 0; i < 12; ++i) many.files.push_back(file(fmt::format("m{}", i), "/nowhere"));
  const std::string said = Models(many).unknown("x").message;
  EXPECT_THAT(said, ::testing::EndsWith("there are: m0, m1, m2, m3, m4, m5, m6, m7, m8, m9 and 2 "
                                        "more"));
}

TEST_F(ModelsTest, AreLoadedOnceForAllWhoWait) {
  Models models(options());
  EXPECT_FALSE(models.starting());
  std::vector<std::promise<Answer<Lease>>> promises(4);
  for (auto& promise : promises)
    models.acquire("alpha", std::nullopt,
                   [&promise](Answer<Lease> answer) { promise.set_value(std::move(answer)); });
  std::vector<Lease> leases;
  for (auto& promise : promises) {
    auto answer = promise.get_future().get();
    ASSERT_TRUE(answer.ok()) << answer.status().message;
    leases.push_back(*answer);
    EXPECT_EQ(&leases.back()->model(), &leases.front()->model());
  }
  EXPECT_EQ(models.find("alpha")->requests, 4);
  EXPECT_EQ(state_of(models, "alpha"), ModelState::kReady);
  leases.clear();
  EXPECT_EQ(models.find("alpha")->requests, 0);
  EXPECT_LT(models.find("alpha")->expires_in, KeepAlive(0));
}

TEST_F(ModelsTest, StayAsLongAsTheLastThatSaidSo) {
  Models models(options());
  const auto expiry = [&] { return models.find("alpha")->expires_in; };
  EXPECT_TRUE(acquire(models, "alpha", std::chrono::hours(1)).ok());
  EXPECT_GT(expiry(), std::chrono::minutes(59));
  EXPECT_TRUE(acquire(models, "alpha").ok());
  EXPECT_GT(expiry(), std::chrono::minutes(59)) << "who says nothing changes nothing";
  EXPECT_TRUE(acquire(models, "alpha", std::chrono::hours(24 * 365 * 1000)).ok());
  EXPECT_LT(expiry(), KeepAlive(0)) << "for ever";
  ASSERT_TRUE(models.unload("alpha").ok());
  ASSERT_TRUE(eventually([&] { return state_of(models, "alpha") == ModelState::kUnloaded; }));
  auto lease = acquire(models, "alpha", std::chrono::hours(1));
  EXPECT_EQ(expiry(), std::chrono::hours(1)) << "no time passes in use";
  ASSERT_TRUE(models.unload("alpha").ok());
  std::atomic<bool> again{false};
  models.acquire("alpha", std::chrono::hours(2), [&](const Answer<Lease>&) { again = true; });
  *lease = nullptr;
  ASSERT_TRUE(eventually([&] { return again.load(); }));
  EXPECT_GT(expiry(), std::chrono::minutes(61)) << "who waits for it to come again has said so";
}

TEST_F(ModelsTest, AreStartingUntilOneWasReady) {
  Models models(options());
  EXPECT_TRUE(acquire(models, "alpha", KeepAlive(0)).ok());
  ASSERT_TRUE(eventually([&] { return state_of(models, "alpha") == ModelState::kUnloaded; }));
  EXPECT_FALSE(models.starting());
  Waiting next = ask(models, "alpha");
  do EXPECT_FALSE(models.starting());
  while (!is_there(next));
}

TEST_F(ModelsTest, GoOnlyWhenNobodyLooksAtThem) {
  Models models(options());
  EXPECT_TRUE(acquire(models, "alpha").ok());
  std::optional<ModelStatus> status = models.find("alpha");
  ASSERT_TRUE(models.unload("alpha").ok());
  ASSERT_TRUE(eventually([&] { return !models.find("alpha")->model; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(state_of(models, "alpha"), ModelState::kUnloading);
  status.reset();
  EXPECT_TRUE(eventually([&] { return state_of(models, "alpha") == ModelState::kUnloaded; }));
}

TEST_F(ModelsTest, GoWhenNobodyAsksForThem) {
  Models models(options());
  auto lease = acquire(models, "alpha", KeepAlive(0));
  ASSERT_TRUE(lease.ok());
  EXPECT_EQ(state_of(models, "alpha"), ModelState::kReady);
  *lease = nullptr;
  EXPECT_TRUE(eventually([&] { return state_of(models, "alpha") == ModelState::kUnloaded; }));
}

TEST_F(ModelsTest, ForgetWhatThoseAskedForWhoWereThereBefore) {
  Models models(options());
  const auto wait_behind = [&](std::optional<KeepAlive> first, std::optional<KeepAlive> second) {
    auto lease = acquire(models, "alpha", first);
    EXPECT_TRUE(lease.ok() && models.unload("alpha").ok());
    Waiting next = ask(models, "alpha", 0, second);
    *lease = nullptr;
    const auto leased = next.get();
    EXPECT_TRUE(leased.ok());
    return models.find("alpha")->expires_in;
  };
  EXPECT_EQ(wait_behind(std::chrono::hours(1), std::nullopt), kForever) << "as options say";
  EXPECT_EQ(wait_behind(KeepAlive(0), std::chrono::hours(2)), std::chrono::hours(2));
}

// What requests left in the heap is no reason to load it smaller, or not at all.
TEST_F(ModelsTest, ComeAgainAsTheyWereWhateverRequestsHold) {
  std::atomic<Bytes> resident{100 * kMiB};
  ModelsOptions some = options();
  some.resident = [&] { return resident.load(); };
  some.engine.program = {};
  Models models(some);
  const auto program = [&] {
    const auto lease = acquire(models, "alpha");
    EXPECT_TRUE(lease.ok());
    const Bytes bytes = (*lease)->model().engine().plan().program;
    EXPECT_TRUE(models.unload("alpha").ok());
    return bytes;
  };
  const Bytes first = program();
  const auto gone = [&] { return state_of(models, "alpha") == ModelState::kUnloaded; };
  ASSERT_TRUE(eventually(gone));
  const Bytes requests = Reserve(some.engine.memory).requests();
  resident = 100 * kMiB + requests;
  EXPECT_EQ(program(), first);
  ASSERT_TRUE(eventually(gone));
  resident = 101 * kMiB + requests;
  EXPECT_EQ(program(), first + kMiB) << "nobody else counts what is beyond";
  ASSERT_TRUE(eventually(gone));
}

TEST_F(ModelsTest, CountTheirVocabulariesForThoseThatComeLater) {
  std::atomic<Bytes> resident{100 * kMiB};
  ModelsOptions some = options();
  std::atomic<bool> grows{false};
  some.resident = [&] { return resident += grows ? 3 * kMiB : 0; };
  Models models(some);
  grows = true;
  const auto alpha = acquire(models, "alpha");
  grows = false;
  ASSERT_TRUE(alpha.ok());
  const auto plan_of = [](const auto& lease) { return (*lease)->model().engine().plan(); };
  EXPECT_GE(plan_of(alpha).program, 103 * kMiB);
  const auto beta = acquire(models, "beta");
  ASSERT_TRUE(beta.ok()) << beta.status().message;
  EXPECT_EQ(plan_of(beta).budget, some.engine.memory - (*alpha)->model().memory() - 3 * kMiB);
}

TEST_F(ModelsTest, GoOnDemandBehindTheirLastRequest) {
  Models models(options());
  auto lease = acquire(models, "alpha");
  ASSERT_TRUE(lease.ok());
  ASSERT_TRUE(models.unload("alpha").ok());
  EXPECT_EQ(state_of(models, "alpha"), ModelState::kUnloading);
  Waiting next = ask(models, "alpha");
  EXPECT_FALSE(is_there(next));
  EXPECT_EQ(models.unload("gamma").code(), StatusCode::kNotFound);
  EXPECT_EQ(models.unload("alph").code(), StatusCode::kNotFound) << "not its whole name";
  EXPECT_NE(models.unload("beta").message().find("is not loaded"), std::string::npos);
  EXPECT_EQ((*lease)->model().file().name, "Alpha");
  *lease = nullptr;
  EXPECT_TRUE(next.get().ok());  // it came again
  EXPECT_EQ(state_of(models, "alpha"), ModelState::kReady);
  ASSERT_TRUE(models.unload("alpha").ok());
  EXPECT_TRUE(eventually([&] { return state_of(models, "alpha") == ModelState::kUnloaded; }));
  EXPECT_EQ(models.unload("alpha").code(), StatusCode::kNotFound);
}

// Room for one model. What is kept for requests is a share of the budget, so less is needed of a
// smaller one.
Bytes room_for_one() {
  Bytes need = kPlenty;
  for (int i = 0; i < 3; ++i) {
    Models models(options(need));
    const auto lease = acquire(models, "alpha");
    EXPECT_TRUE(lease.ok()) << lease.status().message;
    if (lease.ok()) need = (*lease)->model().engine().plan().total();
  }
  return need + 16 * kMiB;
}

// More models than there is room for, and Alpha is in use.
class CrowdedModelsTest : public ModelsTest {
 protected:
  static constexpr std::size_t kQueue = 4;

  void start(std::chrono::milliseconds patience, const std::vector<ModelFile>& more = {}) {
    ModelsOptions crowded = options(room_for_one());
    crowded.files.insert(crowded.files.end(), more.begin(), more.end());
    crowded.patience = patience;
    crowded.engine.queue = kQueue;
    models_ = std::make_unique<Models>(crowded);
    const auto lease = acquire(*models_, "alpha");
    ASSERT_TRUE(lease.ok()) << lease.status().message;
    first_ = *lease;
  }

  // Somebody always uses alpha; `waiting` is the first request that waits.
  void use_until_it_yields(Waiting& waiting) {
    ASSERT_TRUE(eventually([&] {
      waiting = ask(*models_, "alpha");
      if (!is_there(waiting)) return true;
      first_ = std::move(waiting.get()).value();
      return false;
    }));
  }

  std::unique_ptr<Models> models_;
  Lease first_;
};

TEST_F(CrowdedModelsTest, MakeRoomForEachOtherAsSoonAsTheyAreIdle) {
  start(std::chrono::hours(1));
  Waiting second = ask(*models_, "beta");
  auto third = acquire(*models_, "alpha");
  ASSERT_TRUE(third.ok()) << "others do not wait yet";
  first_ = nullptr;
  EXPECT_FALSE(is_there(second));
  EXPECT_TRUE(eventually([&] { return state_of(*models_, "beta") == ModelState::kWaiting; }));
  EXPECT_EQ(models_->find("beta")->requests, 1);
  *third = nullptr;
  const auto lease = second.get();
  ASSERT_TRUE(lease.ok()) << lease.status().message;
  EXPECT_EQ(state_of(*models_, "alpha"), ModelState::kUnloaded);
  EXPECT_EQ(models_->find("beta")->error, "");
}

TEST_F(CrowdedModelsTest, InUseYieldToOneThatHasWaited) {
  start(std::chrono::milliseconds(0));
  Waiting second = ask(*models_, "beta");
  Waiting third;
  use_until_it_yields(third);
  EXPECT_FALSE(is_there(second));
  first_ = nullptr;
  auto lease = second.get();
  ASSERT_TRUE(lease.ok()) << lease.status().message;
  EXPECT_FALSE(is_there(third));
  *lease = nullptr;
  const auto again = third.get();
  ASSERT_TRUE(again.ok()) << again.status().message;
  EXPECT_EQ(state_of(*models_, "beta"), ModelState::kUnloaded);
}

TEST_F(CrowdedModelsTest, GoOnWhenTheOneThatWaitedIsGivenUp) {
  start(std::chrono::milliseconds(0));
  const Models::Ticket ticket = models_->new_ticket();
  Waiting second = ask(*models_, "beta", ticket);
  Waiting third;
  use_until_it_yields(third);
  EXPECT_TRUE(models_->give_up(ticket));
  EXPECT_FALSE(models_->give_up(ticket));
  const auto lease = third.get();
  ASSERT_TRUE(lease.ok()) << lease.status().message;
  EXPECT_EQ(&(*lease)->model(), &first_->model()) << "it was loaded again";
  EXPECT_THROW((void)second.get(), std::future_error);  // the promise went unkept
  EXPECT_EQ(state_of(*models_, "beta"), ModelState::kUnloaded);
  EXPECT_EQ(models_->find("beta")->requests, 0);
  EXPECT_TRUE(is_there(ask(*models_, "alpha"))) << "it still yields";
}

TEST_F(CrowdedModelsTest, GoOnWaitingWhenOneOfManyGivesUp) {
  start(std::chrono::hours(1));
  const Models::Ticket ticket = models_->new_ticket();
  const Waiting second = ask(*models_, "beta", ticket);
  Waiting third = ask(*models_, "beta");
  ASSERT_TRUE(models_->give_up(ticket));
  EXPECT_EQ(models_->find("beta")->requests, 1);
  first_ = nullptr;
  EXPECT_TRUE(third.get().ok());
}

TEST_F(ModelsTest, AreNotUnloadedForOneThatNeverFits) {
  ModelsOptions small = options(room_for_one() - 15 * kMiB);
  small.files.push_back(file("large", reference_path("gpt-oss") + ".gguf"));
  small.patience = std::chrono::milliseconds(0);
  Models models(small);
  const auto lease = acquire(models, "alpha");
  ASSERT_TRUE(lease.ok()) << lease.status().message;
  Waiting waiting = ask(models, "large");
  ASSERT_TRUE(eventually([&] { return is_there(waiting); }));
  const auto refused = waiting.get();
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.status().message, HasSubstr("even where no other model is loaded"));
  EXPECT_EQ(state_of(models, "alpha"), ModelState::kReady);
  EXPECT_TRUE(acquire(models, "alpha").ok());
}

// Where several fit, the one in use for long must not be all that another waits for.
TEST_F(ModelsTest, InUseYieldOneAfterTheOther) {
  ModelsOptions room = options(3 * room_for_one());
  room.files.clear();
  for (int i = 0; i < 32; ++i)
    room.files.push_back(file(fmt::format("m{}.", i), reference_path("llama") + ".gguf"));
  room.patience = std::chrono::milliseconds(1);
  std::atomic<bool> full{false};
  room.log = [&](const std::string& line) {
    if (line.find("waits for memory") != std::string::npos) full = true;
  };
  Models models(room);
  std::map<std::string, Lease> leases;
  Waiting waiting;
  for (const ModelFile& each : room.files) {
    waiting = ask(models, each.name);
    ASSERT_TRUE(eventually([&] { return is_there(waiting) || full; }));
    if (full) break;
    leases[each.name] = std::move(waiting.get()).value();
  }
  ASSERT_GE(leases.size(), 2u);
  ASSERT_LT(leases.size(), room.files.size());
  for (const auto& used : leases)
    ASSERT_TRUE(eventually([&] { return !is_there(ask(models, used.first)); })) << used.first;
  leases.clear();
  EXPECT_TRUE(waiting.get().ok());
}

TEST_F(CrowdedModelsTest, LetNoMoreWaitThanAQueueHolds) {
  start(std::chrono::hours(1));
  const Models::Ticket ticket = models_->new_ticket();
  const Waiting first = ask(*models_, "beta", ticket), second = ask(*models_, "beta");
  for (std::size_t i = 2; i < kQueue; ++i) EXPECT_FALSE(is_there(ask(*models_, "beta")));
  const auto refused = ask(*models_, "beta").get();
  ASSERT_FALSE(refused.ok());
  EXPECT_TRUE(refused.status().is_overload());
  EXPECT_THAT(refused.status().message, HasSubstr("wait for the model beta:latest already"));
  EXPECT_EQ(models_->find("beta")->waiting, kQueue);
  EXPECT_TRUE(models_->give_up(ticket));
  EXPECT_FALSE(is_there(ask(*models_, "beta")));
  first_ = nullptr;
}

TEST_F(CrowdedModelsTest, ThatCannotBeLoadedAfterAllHoldUpNobody) {
  const std::string path = ::testing::TempDir() + "model_that_goes.gguf";
  std::filesystem::copy_file(reference_path("llama") + ".gguf", path,
                             std::filesystem::copy_options::overwrite_existing);
  start(std::chrono::milliseconds(0), {file("gone", path)});
  Waiting second = ask(*models_, "gone");
  Waiting third = ask(*models_, "beta");  // behind it
  ASSERT_TRUE(eventually([&] { return state_of(*models_, "gone") == ModelState::kWaiting; }));
  std::filesystem::remove(path);
  first_ = nullptr;
  EXPECT_FALSE(second.get().ok());
  EXPECT_TRUE(third.get().ok());
  EXPECT_TRUE(ask(*models_, "alpha").get().ok());
}

TEST_F(ModelsTest, ThatNeverFitAreNoMatterOfComingAgain) {
  Models models(options(3 * kMiB));
  const auto refused = acquire(models, "alpha");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().http_status, 400);
  EXPECT_THAT(refused.status().message, HasSubstr("Alpha does not fit"));
  EXPECT_THAT(refused.status().message, HasSubstr("the model needs "));
}

TEST_F(ModelsTest, SayWhyTheyCannotBeLoaded) {
  Models models(options());
  const auto refused = acquire(models, "broken");
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.status().message, HasSubstr("/nowhere"));
  EXPECT_EQ(state_of(models, "broken"), ModelState::kUnloaded);
  EXPECT_FALSE(models.starting());
}

TEST_F(ModelsTest, OfTheCachesAreLoadedByName) {
  ModelsOptions with_caches = options();
  with_caches.find = [](const std::string& name) -> Result<ModelFile> {
    if (name != "cached") return not_found("no {}", name);
    return file("cached", reference_path("qwen3") + ".gguf");
  };
  Models models(with_caches);
  const auto load = [&](const std::string& name) {
    std::promise<Answer<Lease>> promise;
    models.load(name, [&](Answer<Lease> answer) { promise.set_value(std::move(answer)); });
    return promise.get_future().get();
  };
  EXPECT_EQ(load("absent").status().http_status, 404);
  EXPECT_EQ(acquire(models, "cached").status().http_status, 404);  // only load() looks there
  EXPECT_TRUE(load("cached").ok());
  EXPECT_TRUE(acquire(models, "cached").ok());
  EXPECT_TRUE(load("alp").ok()) << "that nobody has exactly";
}

TEST_F(ModelsTest, OfTheCachesAreNotTakenForThoseWhoseNamesBeginSo) {
  ModelsOptions with_caches = options();
  with_caches.files = {file("tiny-chat-v2", reference_path("llama") + ".gguf")};
  with_caches.find = [](const std::string&) -> Result<ModelFile> {
    return file("tiny-chat", reference_path("qwen3") + ".gguf");
  };
  Models models(with_caches);
  EXPECT_TRUE(acquire(models, "tiny-chat").ok());
  EXPECT_EQ(state_of(models, "tiny-chat-v2"), ModelState::kReady);
  std::promise<std::string> loaded;
  models.load("tiny-chat", [&](const Answer<Lease>& answer) {
    loaded.set_value(answer.ok() ? (*answer)->model().file().path : answer.status().message);
  });
  EXPECT_THAT(loaded.get_future().get(), HasSubstr("qwen3"));
  EXPECT_EQ(models.find("tiny-chat")->file.name, "tiny-chat");
  EXPECT_TRUE(acquire(models, "").ok()) << "the one that the server was started with";
}

TEST_F(ModelsTest, EndOnlyBehindTheirLeases) {
  auto models = std::make_unique<Models>(options());
  auto lease = acquire(*models, "alpha");
  ASSERT_TRUE(lease.ok());
  std::atomic<bool> ended{false};
  std::thread ending([&] {
    models.reset();
    ended = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(ended);
  *lease = nullptr;
  ending.join();
}

}  // namespace
}  // namespace strata::serve

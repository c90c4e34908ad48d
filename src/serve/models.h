// The models of a server under one memory budget: loaded when first asked for, unloaded when nobody
// has asked for long, or when another needs the room. One that finds no room waits for others to be
// idle; where they are in use for long, one after the other takes no new requests until it had its
// turn.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "serve/model.h"
#include "serve/refusal.h"

namespace strata::serve {

// How long a model stays without requests; negative: for ever.
using KeepAlive = std::chrono::milliseconds;
constexpr KeepAlive kForever{-1};

struct ModelsOptions {
  std::vector<ModelFile> files;  // that clients may name
  // Finds further ones by name, for load(); empty: there are none.
  std::function<Result<ModelFile>(const std::string&)> find;
  EngineOptions engine;  // of each; its memory, which must not be 0, is for all together
  KeepAlive keep_alive{std::chrono::minutes(5)};
  // How long a model that waits for room lets others take new requests.
  std::chrono::milliseconds patience{std::chrono::seconds(2)};
  FindDefaults sampling;
  std::function<void(const std::string&)> log;  // a line for the operator
  // Memory of the process without what its heap could give back; empty: not known.
  std::function<Bytes()> resident = {};
};

// kUnloading: also while its last requests end.
enum class ModelState : std::uint8_t { kUnloaded, kWaiting, kLoading, kReady, kUnloading };
std::string_view to_string(ModelState state);

struct ModelStatus {
  ModelFile file;
  ModelState state = ModelState::kUnloaded;
  std::shared_ptr<ServedModel> model;  // while it is ready; not to be kept, as it waits to go
  std::int32_t requests = 0;           // that use it or wait for it
  std::int32_t waiting = 0;            // of these, that wait for it
  KeepAlive expires_in{0};             // negative: never
  std::string error;                   // why it could not be loaded the last time
};

// Keeps a model loaded while a request uses it.
class ModelLease {
 public:
  // Lets the model go when it ends, by calling `release`.
  ModelLease(std::shared_ptr<ServedModel> model, std::function<void()> release)
      : model_(std::move(model)), release_(std::move(release)) {}
  ~ModelLease();
  ModelLease(const ModelLease&) = delete;
  ModelLease& operator=(const ModelLease&) = delete;

  ServedModel& model() const { return *model_; }

 private:
  std::shared_ptr<ServedModel> model_;
  const std::function<void()> release_;
};

// Thread-safe.
class Models {
 public:
  using Done = std::function<void(Answer<std::shared_ptr<ModelLease>>)>;
  // Names a call of acquire() or load() for give_up(); 0: it is not given up.
  using Ticket = std::uint64_t;

  explicit Models(ModelsOptions options);
  // Refuses waiting requests, and waits for the end of leases.
  ~Models();

  // Calls `done` at once where the model is ready or unknown, else from the thread that loads. An
  // empty name is the only model that the server was started with. `keep_alive` holds until another
  // is given, or the model goes. As many may wait for a model as may wait in its queue; more are
  // refused.
  void acquire(const std::string& name, std::optional<KeepAlive> keep_alive, const Done& done,
               Ticket ticket = 0);
  // As acquire(), also for models that only options.find knows.
  void load(const std::string& name, const Done& done, Ticket ticket = 0);
  Ticket new_ticket() { return ++tickets_; }
  // Nobody waits for the answer any more: `done` is dropped, and a model that waited for room for
  // nobody else no longer does. A load that has begun goes on, for who comes again. False where
  // `done` was called or is about to be.
  bool give_up(Ticket ticket);
  // Unloads when the last request that uses it ends, or at once where there is none; those that
  // come meanwhile wait until it is loaded again. kNotFound where no model has exactly this name,
  // or it is neither loaded nor loading.
  Status unload(const std::string& name);

  std::vector<ModelStatus> list() const;
  // The status of a known model, by its name or a name that means it.
  std::optional<ModelStatus> find(const std::string& name) const;
  // Of a name that means no model, or several.
  Refusal unknown(const std::string& name) const;
  // Whether no model has been ready yet, and one is loading.
  bool starting() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Waiting {
    Ticket ticket;
    Done done;
    std::optional<KeepAlive> keep_alive;
  };
  struct Entry {
    ModelFile file;
    ModelState state = ModelState::kUnloaded;
    std::shared_ptr<ServedModel> model;
    Bytes texts = 0;  // what its vocabulary and metadata took when it was loaded
    std::int32_t users = 0;
    Clock::time_point last_used;
    KeepAlive keep_alive{0};
    bool unwanted = false;  // goes as soon as nobody uses it; new requests wait
    bool yields = false;    // the same, for a model that finds no room
    std::string error;
    std::vector<Waiting> waiting;
    Clock::time_point waits_since;
    bool has_no_room = false;  // as long as no other model goes
  };

  // By its name, or that without ":latest".
  Entry* entry_called(const std::string& name) const;
  // Also by how its name begins.
  Entry* entry_named(const std::string& name) const;
  ModelStatus status_of(const Entry& entry) const;
  std::string describe_memory(const Entry& entry) const;
  std::shared_ptr<ModelLease> lease(Entry& entry);
  void release(Entry& entry);

  // The thread that loads and unloads.
  void loop();
  Entry* next_to_load();
  Entry* next_to_unload();
  void wait_for_change(std::unique_lock<std::mutex>& lock, const Entry* waiting);
  bool yielding() const;
  void stop_yielding(std::unique_lock<std::mutex>& lock);
  Clock::time_point next_expiry() const;
  Result<std::unique_ptr<ServedModel>> try_loading(std::unique_lock<std::mutex>& lock,
                                                   Entry& entry);
  void load_now(std::unique_lock<std::mutex>& lock, Entry& entry);
  void unload_now(std::unique_lock<std::mutex>& lock, Entry& entry);
  static bool is_idle(const Entry& entry) { return entry.users == 0; }
  static bool goes_on(const Entry& entry) { return !entry.yields; }
  Entry* least_recently_used(bool (*allowed)(const Entry&));
  Status fits_alone(std::unique_lock<std::mutex>& lock, const Entry& entry);
  Bytes planned() const;
  Bytes program_at(Bytes resident, Bytes planned) const;
  void wait_for_room(std::unique_lock<std::mutex>& lock, Entry& entry);
  void forget(Entry& entry);
  void finish_loading(std::unique_lock<std::mutex>& lock, Entry& entry,
                      Result<std::unique_ptr<ServedModel>> loaded);

  const ModelsOptions options_;
  const Bytes budget_;
  const Bytes program_;  // what is resident without any model
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<std::unique_ptr<Entry>> entries_;
  bool was_ready_ = false;         // any of them, once
  std::atomic<bool> stop_{false};  // set under the mutex
  std::atomic<Ticket> tickets_{0};
  std::thread thread_;
};

}  // namespace strata::serve

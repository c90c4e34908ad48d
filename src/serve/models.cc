#include "serve/models.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/ascii.h"
#include "base/printable.h"

namespace strata::serve {
namespace {

// Clients of Ollama write "name:latest" for "name".
constexpr std::string_view kLatest = ":latest";

std::string without_latest(const std::string& name) {
  std::string out = lower_case(name);
  if (out.ends_with(kLatest)) out.resize(out.size() - kLatest.size());
  return out;
}

// Longer ones are for ever, and no point in time is too far away to be one.
KeepAlive kept(KeepAlive time) {
  return time > std::chrono::hours(10 * 365 * 24) ? kForever : time;
}

}  // namespace

std::string_view to_string(ModelState state) {
  switch (state) {
    case ModelState::kUnloaded: return "unloaded";
    case ModelState::kWaiting: return "waiting";
    case ModelState::kLoading: return "loading";
    case ModelState::kReady: return "ready";
    case ModelState::kUnloading: return "unloading";
  }
  return "unknown";
}

ModelLease::~ModelLease() {
  model_.reset();
  release_();
}

Models::Models(ModelsOptions options)
    : options_(std::move(options)),
      budget_(options_.engine.memory),
      program_(options_.resident ? options_.resident() : 0) {
  for (const ModelFile& file : options_.files) {
    entries_.push_back(std::make_unique<Entry>());
    entries_.back()->file = file;
    entries_.back()->keep_alive = kept(options_.keep_alive);
  }
  thread_ = std::thread([this] { loop(); });
}

Models::~Models() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  thread_.join();
  std::unique_lock lock(mutex_);
  wake_.wait(lock, [&] {
    return std::ranges::all_of(entries_, [](const auto& e) { return e->users == 0; });
  });
}

Models::Entry* Models::entry_called(const std::string& name) const {
  for (const auto& entry : entries_)
    if (lower_case(entry->file.name) == lower_case(name)) return entry.get();
  for (const auto& entry : entries_)
    if (without_latest(entry->file.name) == without_latest(name)) return entry.get();
  return nullptr;
}

Models::Entry* Models::entry_named(const std::string& name) const {
  if (name.empty()) return options_.files.size() == 1 ? entries_.front().get() : nullptr;
  if (Entry* const entry = entry_called(name)) return entry;
  const std::string wanted = without_latest(name);
  Entry* found = nullptr;
  for (const auto& entry : entries_) {
    if (!lower_case(entry->file.name).starts_with(wanted)) continue;
    if (found != nullptr) return nullptr;
    found = entry.get();
  }
  return found;
}

std::shared_ptr<ModelLease> Models::lease(Entry& entry) {
  ++entry.users;
  entry.last_used = Clock::now();
  return std::make_shared<ModelLease>(entry.model, [this, &entry] { release(entry); });
}

void Models::acquire(const std::string& name, std::optional<KeepAlive> keep_alive, const Done& done,
                     Ticket ticket) {
  std::unique_lock lock(mutex_);
  Entry* const entry = entry_named(name);
  if (entry == nullptr) {
    lock.unlock();
    if (!name.empty()) return done(unknown(name));
    return done(
        Refusal(400, "invalid_request_error", "name a `model`: this server has several", "model"));
  }
  if (keep_alive) entry->keep_alive = kept(*keep_alive);
  if (entry->state == ModelState::kReady && !entry->yields && !entry->unwanted) {
    auto leased = lease(*entry);
    lock.unlock();
    return done(std::move(leased));
  }
  if (entry->waiting.size() >= options_.engine.queue) {
    const Status full =
        resource_exhausted("{} requests wait for the model {} already; try again later",
                           entry->waiting.size(), entry->file.name);
    lock.unlock();
    return done(Refusal(full));
  }
  if (entry->waiting.empty()) entry->waits_since = Clock::now();
  entry->waiting.push_back({ticket, done, keep_alive});
  if (entry->state == ModelState::kUnloaded) entry->state = ModelState::kWaiting;
  wake_.notify_all();
}

void Models::load(const std::string& name, const Done& done, Ticket ticket) {
  const auto is_here = [&] {
    const std::lock_guard lock(mutex_);
    return entry_called(name) != nullptr;
  };
  if (!options_.find || is_here()) return acquire(name, std::nullopt, done, ticket);
  auto file = options_.find(name);
  if (!file.ok()) {
    if (find(name)) return acquire(name, std::nullopt, done, ticket);
    return done(Refusal(file.status()));
  }
  {
    const std::lock_guard lock(mutex_);
    if (entry_called(file->name) == nullptr) {
      entries_.push_back(std::make_unique<Entry>());
      entries_.back()->file = *file;
      entries_.back()->keep_alive = kept(options_.keep_alive);
    }
  }
  acquire(file->name, std::nullopt, done, ticket);
}

bool Models::give_up(Ticket ticket) {
  Done dropped;  // what it holds goes without the lock
  const std::lock_guard lock(mutex_);
  for (const auto& entry : entries_) {
    const auto found = std::ranges::find(entry->waiting, ticket, &Waiting::ticket);
    if (found == entry->waiting.end()) continue;
    dropped = std::move(found->done);
    entry->waiting.erase(found);
    if (entry->waiting.empty() && entry->state == ModelState::kWaiting) forget(*entry);
    wake_.notify_all();
    return true;
  }
  return false;
}

// Nobody wants it to be loaded any more.
void Models::forget(Entry& entry) {
  entry.state = ModelState::kUnloaded;
  entry.unwanted = entry.has_no_room = false;
  entry.keep_alive = kept(options_.keep_alive);
}

Status Models::unload(const std::string& name) {
  const std::lock_guard lock(mutex_);
  Entry* const entry = entry_called(name);
  if (entry == nullptr) return not_found("there is no model '{}' here", printable(name, 200));
  if (entry->state == ModelState::kUnloaded || entry->state == ModelState::kWaiting)
    return not_found("the model {} is not loaded", entry->file.name);
  entry->unwanted = true;
  wake_.notify_all();
  return {};
}

void Models::release(Entry& entry) {
  const std::lock_guard lock(mutex_);
  --entry.users;
  entry.last_used = Clock::now();
  wake_.notify_all();
}

ModelStatus Models::status_of(const Entry& entry) const {
  const auto waiting = static_cast<std::int32_t>(entry.waiting.size());
  ModelStatus status{.file = entry.file,
                     .state = entry.state == ModelState::kReady && entry.unwanted
                                  ? ModelState::kUnloading
                                  : entry.state,
                     .model = entry.model,
                     .requests = entry.users + waiting,
                     .waiting = waiting,
                     .error = entry.error};
  if (entry.keep_alive < KeepAlive(0))
    status.expires_in = kForever;
  else if (entry.state == ModelState::kReady)
    status.expires_in =
        entry.users > 0
            ? entry.keep_alive
            : std::max(KeepAlive(0), std::chrono::duration_cast<KeepAlive>(
                                         entry.last_used + entry.keep_alive - Clock::now()));
  return status;
}

std::vector<ModelStatus> Models::list() const {
  const std::lock_guard lock(mutex_);
  std::vector<ModelStatus> out;
  for (const auto& entry : entries_) out.push_back(status_of(*entry));
  return out;
}

std::optional<ModelStatus> Models::find(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const Entry* const entry = entry_named(name);
  if (entry == nullptr) return std::nullopt;
  return status_of(*entry);
}

Refusal Models::unknown(const std::string& name) const {
  constexpr std::size_t kMost = 10;
  const std::lock_guard lock(mutex_);
  std::string names;
  for (std::size_t i = 0; i < std::min(entries_.size(), kMost); ++i)
    names += fmt::format("{}{}", i > 0 ? ", " : "", printable(entries_[i]->file.name, 200));
  if (entries_.size() > kMost) names += fmt::format(" and {} more", entries_.size() - kMost);
  return unknown_model(name, names);
}

bool Models::starting() const {
  const std::lock_guard lock(mutex_);
  const auto in = [&](ModelState state) {
    return std::ranges::any_of(entries_, [&](const auto& e) { return e->state == state; });
  };
  return !was_ready_ && (in(ModelState::kLoading) || in(ModelState::kWaiting));
}

// The one that waits longest. Those behind it would take the room that it waits for.
Models::Entry* Models::next_to_load() {
  Entry* found = nullptr;
  for (const auto& entry : entries_) {
    if (entry->state != ModelState::kWaiting) continue;
    if (found == nullptr || entry->waits_since < found->waits_since) found = entry.get();
  }
  return found;
}

Models::Entry* Models::next_to_unload() {
  const Clock::time_point now = Clock::now();
  for (const auto& entry : entries_) {
    if (entry->state != ModelState::kReady || entry->users > 0) continue;
    const bool expired =
        entry->keep_alive >= KeepAlive(0) && now >= entry->last_used + entry->keep_alive;
    if (entry->unwanted || expired) return entry.get();
  }
  const Entry* const next = next_to_load();
  return next != nullptr && next->has_no_room ? least_recently_used(is_idle) : nullptr;
}

// `waiting` finds no room, or is null.
void Models::wait_for_change(std::unique_lock<std::mutex>& lock, const Entry* waiting) {
  Clock::time_point until = next_expiry();
  if (waiting != nullptr) {
    // One more each time, as the first may be in use for long.
    const auto yielding = std::ranges::count_if(entries_, [](const auto& e) { return e->yields; });
    const Clock::time_point due = waiting->waits_since + options_.patience * (yielding + 1);
    if (Clock::now() < due) {
      until = std::min(until, due);
    } else if (Entry* const other = least_recently_used(goes_on)) {
      other->yields = true;
      return;
    }
  }
  wake_.wait_until(lock, until);
}

bool Models::yielding() const {
  return std::ranges::any_of(entries_, [](const auto& e) { return e->yields; });
}

// Who waited for models that have not gone after all goes on.
void Models::stop_yielding(std::unique_lock<std::mutex>& lock) {
  std::vector<std::pair<Done, std::shared_ptr<ModelLease>>> leases;
  for (const auto& entry : entries_) {
    if (!std::exchange(entry->yields, false)) continue;
    if (entry->state != ModelState::kReady || entry->unwanted) continue;
    for (Waiting& each : entry->waiting) leases.emplace_back(std::move(each.done), lease(*entry));
    entry->waiting.clear();
  }
  if (leases.empty()) return;
  lock.unlock();
  for (auto& [done, leased] : leases) done(std::move(leased));
  leases.clear();  // what they hold may be leases, whose end takes the lock
  lock.lock();
}

Models::Clock::time_point Models::next_expiry() const {
  Clock::time_point next = Clock::now() + std::chrono::hours(1);
  for (const auto& entry : entries_)
    if (entry->state == ModelState::kReady && entry->users == 0 &&
        entry->keep_alive >= KeepAlive(0))
      next = std::min(next, entry->last_used + entry->keep_alive);
  return next;
}

void Models::loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    if (stop_) break;
    if (Entry* const entry = next_to_unload()) {
      unload_now(lock, *entry);
      continue;
    }
    Entry* const wanted = next_to_load();
    if (wanted != nullptr && !wanted->has_no_room)
      load_now(lock, *wanted);
    else if (wanted == nullptr && yielding())
      stop_yielding(lock);
    else
      wait_for_change(lock, wanted);
  }
  // More may be added while the lock is off.
  for (std::size_t i = 0; i < entries_.size(); ++i)
    if (!entries_[i]->waiting.empty())
      finish_loading(lock, *entries_[i],
                     make_error(StatusCode::kCancelled, "the server is stopping"));
}

// Of the models that are loaded, whether they have touched it or not.
Bytes Models::planned() const {
  Bytes planned = 0;
  for (const auto& entry : entries_)
    if (entry->model) planned += entry->model->memory() + entry->texts;
  return planned;
}

// What a plan counts as the program's: what it was without models and requests, and what is
// resident beyond all that is planned, for the models and for requests.
Bytes Models::program_at(Bytes resident, Bytes planned) const {
  const Bytes expected = program_ + planned + Reserve(budget_).requests();
  return program_ + std::max(resident, expected) - expected;
}

// Of the models that are ready and that `allowed` holds for; null: there is none.
Models::Entry* Models::least_recently_used(bool (*allowed)(const Entry&)) {
  Entry* found = nullptr;
  for (const auto& entry : entries_) {
    if (entry->state != ModelState::kReady || !allowed(*entry)) continue;
    if (found == nullptr || entry->last_used < found->last_used) found = entry.get();
  }
  return found;
}

Result<std::unique_ptr<ServedModel>> Models::try_loading(std::unique_lock<std::mutex>& lock,
                                                         Entry& entry) {
  EngineOptions options = options_.engine;
  const Bytes others = planned();
  options.memory = budget_ > others ? budget_ - others : 1;
  lock.unlock();
  const auto texts = std::make_shared<Bytes>(0);
  if (options_.resident) {
    const Bytes before = options_.resident();
    options.program = [this, texts, before, program = program_at(before, others)] {
      *texts = std::max(options_.resident(), before) - before;
      return program + *texts;
    };
  }
  auto loaded = ServedModel::load(entry.file, options, Reserve(budget_), options_.sampling,
                                  [this](Bytes, Bytes) { return !stop_; });
  lock.lock();
  entry.texts = *texts;
  return loaded;
}

void Models::load_now(std::unique_lock<std::mutex>& lock, Entry& entry) {
  entry.state = ModelState::kLoading;
  entry.has_no_room = false;
  Status fits;
  for (bool first = true;; first = false) {
    auto loaded = try_loading(lock, entry);
    const bool no_room =
        !loaded.ok() && loaded.status().code() == StatusCode::kResourceExhausted && !stop_;
    if (no_room && entry.waiting.empty()) {
      forget(entry);
      break;
    }
    const bool alone =
        std::ranges::none_of(entries_, [](const auto& e) { return e->model != nullptr; });
    if (no_room && first && !alone) fits = fits_alone(lock, entry);
    if (no_room && !fits.ok()) {
      loaded = fits;
    } else if (no_room && alone) {  // to come again would not help
      loaded = unsupported("{} does not fit, though no other model is loaded: {}", entry.file.name,
                           loaded.status().message());
    } else if (no_room) {
      Entry* const victim = least_recently_used(is_idle);
      if (victim == nullptr) return wait_for_room(lock, entry);
      unload_now(lock, *victim);
      continue;
    }
    finish_loading(lock, entry, std::move(loaded));
    break;
  }
  stop_yielding(lock);
}

// kUnsupported where it would find no room if no other model were there. Nothing is loaded for
// that.
Status Models::fits_alone(std::unique_lock<std::mutex>& lock, const Entry& entry) {
  EngineOptions options = options_.engine;
  options.memory = budget_;
  options.program = [this] { return program_; };
  lock.unlock();
  const auto planned = ServedModel::load(entry.file, options, Reserve(budget_), options_.sampling,
                                         [](Bytes, Bytes) { return false; });
  lock.lock();
  if (planned.status().code() != StatusCode::kResourceExhausted) return {};
  return unsupported("{} does not fit, even where no other model is loaded: {}", entry.file.name,
                     planned.status().message());
}

// Until others have gone.
void Models::wait_for_room(std::unique_lock<std::mutex>& lock, Entry& entry) {
  entry.state = ModelState::kWaiting;
  entry.has_no_room = true;
  const std::string line =
      fmt::format("{} waits for memory that other models use", entry.file.name);
  lock.unlock();
  if (options_.log) options_.log(line);
  lock.lock();
}

// Its plan is made with what other models leave of the budget.
std::string Models::describe_memory(const Entry& entry) const {
  const PlacementPlan& plan = entry.model->engine().plan();
  std::string line = describe(plan);
  if (plan.budget < budget_)
    line += fmt::format(", which is {} less what other models take", human_bytes(budget_));
  return line;
}

void Models::finish_loading(std::unique_lock<std::mutex>& lock, Entry& entry,
                            Result<std::unique_ptr<ServedModel>> loaded) {
  std::vector<Waiting> waiting;
  waiting.swap(entry.waiting);
  const Status status = loaded.status();
  std::vector<std::shared_ptr<ModelLease>> leases;
  if (status.ok()) {
    entry.model = std::move(*loaded);
    entry.state = ModelState::kReady;
    was_ready_ = true;
    entry.error.clear();
    entry.last_used = Clock::now();
    for (std::size_t i = 0; i < waiting.size(); ++i) leases.push_back(lease(entry));
  } else {
    forget(entry);
    entry.error = status.message();
  }
  std::vector<std::string> lines;
  if (status.ok()) {
    lines.push_back(
        fmt::format("loaded {} in {:.2f} s", entry.file.name, entry.model->load_seconds()));
    lines.push_back(describe_memory(entry));
    for (const std::string& note : entry.model->engine().plan().notes)
      lines.push_back(fmt::format("note: {}: {}", entry.file.name, note));
  } else if (status.code() != StatusCode::kCancelled) {
    lines.push_back(fmt::format("could not load {}: {}", entry.file.name, status.message()));
  }
  lock.unlock();
  if (options_.log)
    for (const std::string& line : lines) options_.log(line);
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    if (status.ok())
      waiting[i].done(std::move(leases[i]));
    else
      waiting[i].done(Refusal(status));
  }
  waiting.clear();  // as in stop_yielding()
  leases.clear();
  lock.lock();
}

void Models::unload_now(std::unique_lock<std::mutex>& lock, Entry& entry) {
  entry.state = ModelState::kUnloading;
  std::shared_ptr<ServedModel> model = std::move(entry.model);
  lock.unlock();
  // Who asked for its status may hold it for a moment, and its memory with it.
  while (model.use_count() > 1) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  model.reset();
  if (options_.log) options_.log(fmt::format("unloaded {}", entry.file.name));
  lock.lock();
  entry.yields = false;
  forget(entry);
  if (!entry.waiting.empty()) entry.state = ModelState::kWaiting;
  // What those asked for who are gone went with the model.
  for (const Waiting& each : entry.waiting)
    if (each.keep_alive) entry.keep_alive = kept(*each.keep_alive);
  for (const auto& each : entries_) each->has_no_room = false;
}

}  // namespace strata::serve

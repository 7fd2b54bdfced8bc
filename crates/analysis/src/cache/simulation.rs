//! From a trace's accesses to results: several configurations in one pass, on one thread or several.

use std::sync::Arc;

use anytrace_core::Error;
use anytrace_core::access::{
    Access, AccessKind, AccessSink, Gatherer, RegionAdded, RegionRemoved, ThreadNumber, TypeNumber,
};

use super::attribution::Attribution;
use super::batch::Batch;
use super::config::Config;
use super::cores::Cores;
use super::options::Options;
use super::results::{ConfigResults, Results};
use super::tally::{Gain, Threads};
use super::unit::Unit;
use super::workers::Workers;

/// Of a number, the records that were served from beyond the first level, by server.
pub(super) type Beyond<'a> = dyn Fn(u32) -> Vec<u64> + 'a;

/// A simulation of several configurations.
#[derive(Debug)]
pub struct Simulation {
    configs: Vec<Config>,
    options: Options,
    cores: Arc<Cores>,
    threads: Threads,
    attribution: Option<Attribution>,
    wants_places: bool,
    /// Units that run on this thread; the workers have the others.
    units: Vec<Unit>,
    workers: Option<Workers>,
    fields: Vec<u32>,
    places: Vec<u64>,
    kept: Vec<Access>,
    fetches_left_out: u64,
}

impl Simulation {
    /// The caches of one configuration for an engine that follows types through them, and the bytes of a line of the
    /// first level.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn by_type(config: &Config) -> Result<(Self, u64), Error> {
        let options = Options { with_types: true, threads: 1, ..Options::default() };
        let line_bytes = config.levels.first().map_or(64, |level| level.line);
        Ok((Self::new(vec![config.clone()], options)?, line_bytes))
    }

    /// Begins with empty caches.
    ///
    /// # Errors
    /// Usage, when a configuration is wrong.
    pub fn new(configs: Vec<Config>, options: Options) -> Result<Self, Error> {
        for config in &configs {
            config.check().map_err(|wrong| Error::usage(format!("{}: {wrong}", config.name)))?;
        }
        let wants_places = configs.iter().flat_map(|c| &c.levels).any(|level| level.prefetch.stride);
        let attribution = (options.with_types || wants_places).then(Attribution::default);
        let threads = options.threads.max(1);
        let mut units = Vec::new();
        // Where each thread can work on a configuration of its own, none need be split.
        let shares = threads / configs.len().max(1);
        for (at, config) in configs.iter().enumerate() {
            units.extend(Unit::of_config(at, config, &options, shares));
        }
        let workers =
            (threads > 1 && units.len() > 1).then(|| Workers::start(std::mem::take(&mut units), &configs, threads));
        Ok(Self {
            cores: Arc::new(Cores::new(options.cores.clone())),
            configs,
            options,
            threads: Threads::default(),
            attribution,
            wants_places,
            units,
            workers,
            fields: Vec::new(),
            places: Vec::new(),
            kept: Vec::new(),
            fetches_left_out: 0,
        })
    }

    /// The results.
    ///
    /// # Errors
    /// As the sink's.
    pub fn finish(self) -> Result<Results, Error> {
        self.finish_with(&mut |_| {})
    }

    /// The same. `numbered` is called for each configuration, with a function that says of each number that
    /// [`Self::take_by`] had how many records were served from beyond the first level.
    pub(super) fn finish_with(self, numbered: &mut dyn FnMut(&Beyond<'_>)) -> Result<Results, Error> {
        let Self { configs, options, cores, threads, attribution, mut units, workers, .. } = self;
        let mut gains: Vec<Gain> = configs.iter().map(Gain::new).collect();
        if let Some(workers) = workers {
            units = workers.finish(&mut gains, &cores)?;
        }
        // Workers return the units of each of them, so those of one configuration may lie apart.
        units.sort_by_key(Unit::config_at);
        // Attribution may exist only for the places that stride prefetchers need.
        let typed = attribution.filter(|_| options.with_types);
        let mut results = Vec::new();
        for (at, (config, mut gain)) in configs.into_iter().zip(gains).enumerate() {
            let mut found = ConfigResults::empty(config, &threads);
            for unit in units.iter().filter(|unit| unit.config_at() == at) {
                unit.add_to(&mut found, &mut gain);
            }
            found.finish(&gain, &threads, &cores, typed.as_ref());
            numbered(&|number| gain.beyond(number));
            results.push(found);
        }
        let [reads, writes] = threads.totals();
        Ok(Results {
            accesses: reads + writes + threads.zero_size,
            reads,
            writes,
            fetches_left_out: self.fetches_left_out,
            cores: cores.count(),
            configs: results,
        })
    }

    /// Counts accesses; how many are fetches that are left out.
    pub(super) fn count(&mut self, batch: &[Access]) -> u64 {
        let fetches = self.threads.count(batch, self.options.with_fetches);
        self.fetches_left_out += fetches;
        fetches
    }

    /// Works off accesses that are all simulated.
    fn take(&mut self, batch: &[Access]) -> Result<(), Error> {
        let mut fields = std::mem::take(&mut self.fields);
        fields.clear();
        self.attribute(batch, &mut fields);
        let numbers = if self.options.with_types { fields.as_slice() } else { &[] };
        let taken = self.work(batch, numbers);
        self.fields = fields;
        taken
    }

    /// Takes a batch of a trace with numbers from elsewhere in place of those of fields: `number` appends one for each
    /// access that is simulated.
    pub(super) fn take_by(
        &mut self,
        batch: &[Access],
        number: &mut dyn FnMut(&[Access], &mut Vec<u32>),
    ) -> Result<(), Error> {
        let fetches = self.count(batch);
        let mut kept = std::mem::take(&mut self.kept);
        let batch = if fetches == 0 {
            batch
        } else {
            kept.clear();
            kept.extend(batch.iter().filter(|access| access.kind != AccessKind::Fetch));
            &kept
        };
        let mut numbers = std::mem::take(&mut self.fields);
        numbers.clear();
        // Attribution exists for the places that stride prefetchers need; its numbers are not used.
        self.attribute(batch, &mut numbers);
        numbers.clear();
        number(batch, &mut numbers);
        let taken = if batch.is_empty() { Ok(()) } else { self.work(batch, &numbers) };
        (self.kept, self.fields) = (kept, numbers);
        taken
    }

    fn attribute(&mut self, batch: &[Access], fields: &mut Vec<u32>) {
        self.places.clear();
        if let Some(attribution) = &mut self.attribution {
            let places = self.wants_places.then_some(&mut self.places);
            attribution.attribute(batch, fields, places);
        }
    }

    fn work(&mut self, batch: &[Access], fields: &[u32]) -> Result<(), Error> {
        let only = self.threads.only();
        let batch = Batch { accesses: batch, fields, places: &self.places, cores: &self.cores, only };
        if let Some(workers) = &mut self.workers {
            return workers.take(batch, &self.cores);
        }
        // Without shards no record is served in parts.
        let mut partial = Vec::new();
        self.units.iter_mut().for_each(|unit| unit.run(batch, &mut partial));
        Ok(())
    }
}

impl AccessSink for Simulation {
    fn gatherer(&mut self, thread: ThreadNumber) -> Option<&mut Gatherer> {
        // Where more is needed of an access than its line, it must be emitted.
        if self.attribution.is_some() || self.threads.only() != Some(thread) {
            return None;
        }
        match (&mut self.workers, self.units.as_mut_slice()) {
            (Some(workers), _) => workers.gatherer(&self.cores),
            (None, [unit]) => unit.gatherer(&self.cores),
            _ => None,
        }
    }

    fn gathered(&mut self, thread: ThreadNumber) -> Result<(), Error> {
        let [reads, writes] = match (&mut self.workers, self.units.as_mut_slice()) {
            (Some(workers), _) => workers.take_gathered(thread, &self.cores)?,
            (None, [unit]) => unit.run_gathered(thread),
            _ => [0; 2],
        };
        self.threads.note(thread, reads, writes);
        Ok(())
    }

    fn thread(&mut self, number: ThreadNumber, id: Option<u64>) -> Result<(), Error> {
        let was_only = self.threads.only().is_some();
        self.threads.add(number, id);
        let has_private = self.configs.iter().flat_map(|c| c.levels.iter().chain(&c.tlb)).any(|level| level.is_private);
        let grows = self.cores.next(id) >= self.cores.count();
        if let Some(workers) = self.workers.as_mut().filter(|_| was_only || has_private && grows) {
            // Caches of a new core begin with the chunk that knows of it. The list of cores is copied while a chunk has
            // it: where a thread brings no new core, that would be a copy for each of many threads.
            workers.flush(&self.cores)?;
        }
        Arc::make_mut(&mut self.cores).thread(number, id);
        let cores = self.cores.count();
        let private: usize = self
            .configs
            .iter()
            .flat_map(|c| &c.levels)
            .filter(|l| l.is_private)
            .map(|level| {
                let geometry = level.geometry();
                geometry.sets.saturating_mul(geometry.ways)
            })
            .sum();
        if private.saturating_mul(cores) > PRIVATE_LINES_MAX {
            return Err(Error::limit(format!(
                "private caches of {cores} cores have more than {PRIVATE_LINES_MAX} lines; use --cores N to make \
                 threads share cores"
            )));
        }
        Ok(())
    }

    fn type_name(&mut self, _number: TypeNumber, name: Option<&[u8]>) -> Result<(), Error> {
        if let Some(attribution) = &mut self.attribution {
            attribution.type_name(name);
        }
        Ok(())
    }

    fn fields_known(&mut self, number: TypeNumber) -> Result<(), Error> {
        if let Some(attribution) = &mut self.attribution {
            attribution.fields_known(number);
        }
        Ok(())
    }

    fn region_added(&mut self, region: &RegionAdded) -> Result<(), Error> {
        self.attribution.as_mut().map_or(Ok(()), |attribution| attribution.region_added(region))
    }

    fn region_removed(&mut self, region: &RegionRemoved) -> Result<(), Error> {
        if let Some(attribution) = &mut self.attribution {
            attribution.region_removed(region);
        }
        Ok(())
    }

    fn accesses(&mut self, batch: &[Access]) -> Result<(), Error> {
        if self.count(batch) == 0 {
            return self.take(batch);
        }
        let mut kept = std::mem::take(&mut self.kept);
        kept.clear();
        kept.extend(batch.iter().filter(|access| access.kind != AccessKind::Fetch));
        // A batch of nothing but fetches leaves nothing to simulate.
        let taken = if kept.is_empty() { Ok(()) } else { self.take(&kept) };
        self.kept = kept;
        taken
    }
}

/// Most lines of all private caches together.
const PRIVATE_LINES_MAX: usize = 1 << 26;

//! What became of events of which the recorder says how many there were.

/// What became of the events of a stream or of all streams of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Fate {
    /// Events recorded, as far as is known: by the recorder's account, or by the highest counter that arrived.
    pub recorded: u64,
    /// Packets that arrived.
    pub received: u64,
    /// Of these, those that had arrived before, in this part or another.
    pub duplicates: u64,
    /// Of these, those whose body is damaged.
    pub malformed: u64,
    /// Arrivals below the highest counter so far, duplicates included.
    pub out_of_order: u64,
    /// Recorded events that did not arrive: those of the next three and others, lost on the way.
    pub lost: u64,
    /// Of these, those dropped because the recorder's memory was full.
    pub dropped: u64,
    /// Of these, those that the recorder's destination refused.
    pub refused: u64,
    /// Events recorded before the first part that was given. They are not among those lost.
    pub before: u64,
    /// Events missing before counters that are further ahead than a program can have recorded in the time. They are not
    /// among those lost.
    pub doubtful: u64,
    /// Events with such counters.
    pub doubtful_events: u64,
}

impl Fate {
    /// Events that arrived, each counted once, intact or not.
    pub fn arrived(&self) -> u64 {
        self.received.saturating_sub(self.duplicates).saturating_sub(self.doubtful_events)
    }

    /// Events that got lost after the recorder handed them over.
    pub fn lost_on_the_way(&self) -> u64 {
        self.lost.saturating_sub(self.dropped).saturating_sub(self.refused)
    }

    /// Adds the counts of another stream.
    pub fn add(&mut self, other: &Self) {
        self.recorded = self.recorded.saturating_add(other.recorded);
        self.received = self.received.saturating_add(other.received);
        self.duplicates = self.duplicates.saturating_add(other.duplicates);
        self.malformed = self.malformed.saturating_add(other.malformed);
        self.out_of_order = self.out_of_order.saturating_add(other.out_of_order);
        self.lost = self.lost.saturating_add(other.lost);
        self.dropped = self.dropped.saturating_add(other.dropped);
        self.refused = self.refused.saturating_add(other.refused);
        self.before = self.before.saturating_add(other.before);
        self.doubtful = self.doubtful.saturating_add(other.doubtful);
        self.doubtful_events = self.doubtful_events.saturating_add(other.doubtful_events);
    }

    /// The figures by their names in JSON.
    pub fn named(&self) -> [(&'static str, u64); 12] {
        [
            ("recorded", self.recorded),
            ("received", self.received),
            ("duplicates", self.duplicates),
            ("malformed", self.malformed),
            ("out_of_order", self.out_of_order),
            ("lost", self.lost),
            ("dropped", self.dropped),
            ("refused", self.refused),
            ("lost_on_the_way", self.lost_on_the_way()),
            ("before_first_part", self.before),
            ("doubtful", self.doubtful),
            ("doubtful_events", self.doubtful_events),
        ]
    }
}

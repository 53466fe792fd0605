//! The matcher: a set of rules over any exchanges and events. Counters never go backwards, a fault fires once at most on
//! an exchange and only after it matched, never more often than `times`, never unarmed; what is withheld stays so; and
//! the same rules decide the same again. Input: faults, then what happens, both by choice from short lists.
#![no_main]

use arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use spiritlevel_model::{
    Actor, RequestId, RequestInfo, Revision, StreamId, Uid,
    fault::{Bodies, Exchange, Fault, Frame, FrameFate, FrameType, Moment, RuleEvent, RuleSet, Scope, Stream},
};
use std::collections::{BTreeMap, BTreeSet};

const NAMES: [&str; 4] = ["f0", "f1", "f2", "f3"];
const GLOBS: [&str; 8] = ["*", "pg-?", "pg-1", "[", "{a,b}", "", "operator/*", "pods"];
const CELS: [&str; 4] =
    ["object.metadata.name == 'pg-1'", "has(object.spec)", "object.metadata.labels.size() > 0", "1 / 0 == 0"];
const URLS: [(&str, &str); 12] = [
    ("POST", "/api/v1/namespaces/a/pods"),
    ("GET", "/api/v1/namespaces/a/pods/pg-1"),
    ("PUT", "/api/v1/namespaces/a/pods/pg-1"),
    ("PATCH", "/apis/apps/v1/namespaces/a/statefulsets/pg-1/status?force=true"),
    ("DELETE", "/api/v1/namespaces/a/pods/pg-1"),
    ("GET", "/api/v1/namespaces/a/pods"),
    ("GET", "/api/v1/namespaces/a/pods?watch=true&resourceVersion=5"),
    ("GET", "/api/v1/namespaces/a/pods?watch=true&sendInitialEvents=true"),
    ("GET", "/api/v1/pods?watch=1"),
    ("GET", "/apis/apps/v1"),
    ("GET", "/apis"),
    ("DELETE", "/api/v1/namespaces/b/pods"),
];
const ACTORS: [&str; 4] = ["operator/0", "operator/1", "garbage-collector", "user"];

fuzz_target!(|input: &[u8]| {
    let _ = run(&mut Unstructured::new(input));
});

fn run(u: &mut Unstructured<'_>) -> Result<()> {
    let mut faults = Vec::new();
    for name in &NAMES[..u.int_in_range(1..=4)?] {
        let text = fault(name, u)?;
        faults.push(serde_json::from_value(text.clone()).unwrap_or_else(|e| panic!("{text} is no fault: {e}")));
    }
    let mut world = World::new(faults);
    for _ in 0..64 {
        if u.is_empty() {
            break;
        }
        world.happens(u)?;
    }
    Ok(())
}

// === faults ===

fn fault(name: &str, u: &mut Unstructured<'_>) -> Result<Value> {
    let mut matches = json!({});
    for (key, among) in [
        ("actor", &["operator/*", "operator/0", "*", "user"][..]),
        ("userAgent", &GLOBS),
        ("verb", &["create", "get", "list", "watch", "update", "patch", "delete", "deletecollection"]),
        ("resource", &["pods", "*", "*.apps", "statefulsets.apps", "["]),
        ("subresource", &["*", "status"]),
        ("namespace", &["a", "*", "b"]),
        ("name", &GLOBS),
        ("body", &CELS),
        ("diff", &CELS),
        ("of", &["object", "actor"]),
    ] {
        if u.ratio(1, 4)? {
            matches[key] = match *u.choose(among)? {
                one if key == "actor" || key == "resource" => json!([one, *u.choose(among)?]),
                one => one.into(),
            };
        }
    }
    for key in ["nth", "every", "times"] {
        if u.ratio(1, 4)? {
            matches[key] = match u.int_in_range(0..=7)? {
                7 => u64::MAX,
                small => small,
            }
            .into();
        }
    }
    if u.ratio(1, 8)? {
        matches["labels"] = json!({"app": u.choose(&GLOBS)?});
    }
    if u.ratio(1, 8)? {
        matches["query"] = json!({"resourceVersion": u.choose(&GLOBS)?});
    }
    if u.ratio(1, 8)? {
        matches["after"] = json!({"fired": "f0"});
    }
    let mut fault = json!({"name": name, "match": matches, "do": action(u)?});
    if u.ratio(1, 4)? {
        fault["for"] = "3s".into();
    }
    if u.ratio(1, 4)? {
        fault["at"] = json!(u.choose(&["beforeSend", "afterCommit", "afterReply"])?);
    }
    Ok(fault)
}

fn action(u: &mut Unstructured<'_>) -> Result<Value> {
    let types = [json!([]), json!(["ADDED"]), json!(["MODIFIED", "DELETED"]), json!(["BOOKMARK", "ERROR"])];
    let mut events = json!({"types": u.choose(&types)?});
    if u.ratio(1, 4)? {
        events["where"] = json!(u.choose(&CELS)?);
    }
    Ok(match u.int_in_range(0..=19)? {
        0 => json!({"reject": {"status": u.arbitrary::<u16>()?}}),
        1 => json!({"conflict": {}}),
        2 => json!({"disconnect": {"as": "reset"}}),
        3 => json!({"crash": {}}),
        4 => json!({"mark": {}}),
        5 => json!({"emptyList": {}}),
        6 => json!({"throttle": {"perSecond": u.arbitrary::<u32>()?}}),
        7 => json!({"denyVerb": {}}),
        8 => json!({"discoveryFailure": {"group": u.choose(&["apps", ""])?}}),
        9 => json!({"shortWatch": {"timeout": "1s"}}),
        10 => json!({"partition": {"as": "refuse"}}),
        11 => json!({"staleView": {"at": {"step": "s"}, "kinds": [u.choose(&GLOBS)?]}}),
        12 => {
            let ways = ["clean", "reset", "error410", "expire", "stall", "stallConnection"];
            json!({"closeWatch": {"as": u.choose(&ways)?}})
        }
        13 => json!({"dropEvents": events}),
        14 => json!({"duplicateEvents": events}),
        15 => json!({"withholdBookmarks": {}}),
        16 => json!({"replayFromOlder": {"versions": u.int_in_range(0..=3)?}}),
        17 => json!({"delayEvents": {"by": "1s"}}),
        _ => {
            events["then"] = json!(u.choose(&["expire", "error410"])?);
            json!({"withholdEvents": events})
        }
    })
}

// === what happens ===

struct World {
    faults: Vec<Fault>,
    rules: RuleSet,
    /// The same rules again, told the same.
    twin: RuleSet,
    armed: BTreeSet<String>,
    /// The last ordinal by fault and actor.
    ordinals: BTreeMap<(String, String), u64>,
    /// Streams that a fault withholds.
    withheld: BTreeSet<(StreamId, String)>,
    requests: u64,
}

impl World {
    fn new(faults: Vec<Fault>) -> Self {
        let rules = || RuleSet::new(&faults).expect("the expressions compile");
        Self {
            rules: rules(),
            twin: rules(),
            faults,
            armed: BTreeSet::new(),
            ordinals: BTreeMap::new(),
            withheld: BTreeSet::new(),
            requests: 0,
        }
    }

    fn happens(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let name = *u.choose(&NAMES)?;
        let before = self.fired();
        match u.int_in_range(0..=15)? {
            0 | 1 => {
                self.both(|r| r.arm(name));
                if self.rules.fault(name).is_some() {
                    self.armed.insert(name.into());
                }
            }
            2 => {
                let ended = self.both(|r| r.heal(name));
                let of_it: Vec<StreamId> = self.withheld.iter().filter(|w| w.1 == name).map(|w| w.0).collect();
                assert!(
                    of_it.iter().all(|s| ended.iter().any(|e| e.0 == *s)),
                    "a withheld stream is not ended by heal"
                );
                assert_eq!(self.both(|r| r.heal(name)), [], "healed twice");
                self.armed.remove(name);
                self.withheld.retain(|w| w.1 != name);
            }
            3 => {
                self.both(|r| r.disarm(name));
                self.armed.remove(name);
                self.withheld.retain(|w| w.1 != name);
            }
            4 => self.both(|r| r.open(name)),
            5 => {
                self.both(|r| r.count_firing(name));
                let known = u64::from(self.rules.fault(name).is_some());
                assert_eq!(self.rules.fired(name), before.get(name).map_or(0, |b| b + known));
            }
            6 => {
                let stream = StreamId(u.int_in_range(1..=3)?);
                self.both(|r| r.stream_ended(stream));
                self.withheld.retain(|w| w.0 != stream);
            }
            7 => {
                let revision = Revision(u.arbitrary()?);
                self.both(|r| r.set_moment(&Moment::Step("s".into()), revision));
            }
            8 => {
                let stream = stream(u)?;
                self.both(|r| r.expire(name, &stream));
            }
            9 => {
                let open = [stream(u)?, stream(u)?];
                let closed = self.both(|r| r.streams_to_close(name, &open));
                assert!(closed.iter().all(|c| open.iter().any(|s| s.id == *c)), "a stream that is not open is closed");
            }
            10 | 11 => self.frame(u)?,
            _ => self.request(u)?,
        }
        for name in NAMES {
            assert_eq!(self.rules.is_armed(name), self.armed.contains(name), "{name}");
        }
        for (name, before) in before {
            assert!(self.rules.fired(&name) >= before, "{name} has fired less often than before");
        }
        Ok(())
    }

    fn request(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        self.requests += 1;
        let (actor, id) = (Actor((*u.choose(&ACTORS)?).into()), RequestId(self.requests));
        let info = if u.ratio(1, 8)? {
            RequestInfo::classify(u.choose(&URLS)?.0, &String::from_utf8_lossy(u.bytes(u.len().min(24))?))
        } else {
            let (method, url) = *u.choose(&URLS)?;
            RequestInfo::classify(method, url)
        };
        let bodies = bodies(u)?;
        let user_agent = u.arbitrary::<bool>()?.then_some("pg-1");
        let x = Exchange { id, actor: &actor, user_agent, info: &info, bodies: &bodies };
        let before = self.fired();
        let asks = self.both(|r| r.asks_for_outcome(&x));
        assert!(!asks || info.verb.is_write(), "a dry run of a read");
        let (winner, events) = self.both(|r| r.on_request(&x));
        let fired = self.told(&events, &actor, id, &before);
        match (&winner, fired.as_slice()) {
            (Some(w), [fault]) => assert_eq!((&w.fault, w.request), (fault, id)),
            // What a former stream left behind.
            (Some(_), []) => assert_eq!(events, []),
            (None, []) => {}
            other => panic!("{other:?}"),
        }
        Ok(())
    }

    fn frame(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let stream = stream(u)?;
        let kinds = [FrameType::Added, FrameType::Modified, FrameType::Deleted, FrameType::Bookmark, FrameType::Error];
        let object = object(u)?;
        let f = Frame {
            kind: *u.choose(&kinds)?,
            object: &object,
            uid: None,
            namespace: object["metadata"]["namespace"].as_str(),
            name: object["metadata"]["name"].as_str(),
            revision: u.arbitrary::<Option<u64>>()?.map(Revision),
        };
        let before = self.fired();
        let (fate, events) = self.both(|r| r.on_frame(&stream, &f));
        let fired = self.told(&events, &stream.actor, stream.request, &before);
        assert!(fired.len() <= 1, "{fired:?} fired on one event");
        let by = match &fate {
            FrameFate::Deliver => None,
            FrameFate::Drop { fault }
            | FrameFate::Duplicate { fault }
            | FrameFate::Withhold { fault }
            | FrameFate::Delay { fault, .. }
            | FrameFate::CloseAfter { fault, .. } => Some(fault.clone()),
        };
        assert!(by.as_ref().is_none_or(|f| self.armed.contains(f)), "{fate:?} by a fault that is not armed");
        assert!(fired.first().is_none_or(|f| Some(f) == by.as_ref()), "{fired:?} fired, and the fate is {fate:?}");
        if self.withheld.iter().any(|w| w.0 == stream.id) {
            assert_ne!(fate, FrameFate::Deliver, "a withheld stream goes on");
        }
        if let FrameFate::Withhold { fault } = &fate {
            self.withheld.insert((stream.id, fault.clone()));
        }
        Ok(())
    }

    /// Checks what was told of one exchange or event; returns what fired.
    fn told(
        &mut self,
        events: &[RuleEvent],
        actor: &Actor,
        id: RequestId,
        before: &BTreeMap<String, u64>,
    ) -> Vec<String> {
        let (mut matched, mut fired) = (BTreeSet::new(), Vec::new());
        for event in events {
            match event {
                RuleEvent::Matched { fault, request, ordinal } => {
                    assert_eq!(*request, id);
                    assert!(self.armed.contains(fault), "{fault} matched and is not armed");
                    assert!(matched.insert(fault.clone()), "{fault} matched twice");
                    let m = &self.faults.iter().find(|f| f.name == *fault).expect("the fault is known").matches;
                    assert!(m.is_for(actor), "{fault} matched {actor}");
                    let last = self.ordinals.entry((fault.clone(), actor.0.clone())).or_default();
                    if m.of == Some(Scope::Object) {
                        assert!((1..=*last + 1).contains(ordinal), "{fault} jumps to {ordinal}");
                        *last = (*last).max(*ordinal);
                    } else {
                        assert_eq!(*ordinal, *last + 1, "{fault} does not count on");
                        *last = *ordinal;
                    }
                }
                RuleEvent::Fired { fault, request, .. } => {
                    assert_eq!(*request, id);
                    assert!(matched.contains(fault), "{fault} fired and did not match");
                    fired.push(fault.clone());
                }
            }
        }
        for (name, before) in before {
            let here = fired.iter().filter(|f| *f == name).count() as u64;
            assert_eq!(self.rules.fired(name), before + here, "{name}");
            let fault = self.faults.iter().find(|f| f.name == *name).expect("the fault is known");
            let limit = fault.matches.times.unwrap_or(u64::MAX);
            assert!(here == 0 || *before < limit, "{name} fired more often than {limit} times");
        }
        fired
    }

    fn fired(&self) -> BTreeMap<String, u64> {
        self.faults.iter().map(|f| (f.name.clone(), self.rules.fired(&f.name))).collect()
    }

    /// Tells both sets; they must say the same.
    fn both<T: PartialEq + std::fmt::Debug>(&mut self, tell: impl Fn(&mut RuleSet) -> T) -> T {
        let said = tell(&mut self.rules);
        assert_eq!(tell(&mut self.twin), said, "the same rules decide differently");
        said
    }
}

fn stream(u: &mut Unstructured<'_>) -> Result<Stream> {
    // What a stream is does not change while it is open.
    let id = u.int_in_range(1..=3)?;
    let url = URLS[6 + id as usize - 1].1;
    Ok(Stream {
        id: StreamId(id),
        request: RequestId(id),
        actor: Actor::operator(id as usize % 2),
        user_agent: (id == 1).then(|| "pg-1".into()),
        info: RequestInfo::classify("GET", url),
    })
}

fn object(u: &mut Unstructured<'_>) -> Result<Value> {
    Ok(match u.int_in_range(0..=3)? {
        0 => Value::Null,
        1 => json!({"metadata": {"name": "pg-1", "namespace": "a", "labels": {"app": "pg-1"}}, "spec": {}}),
        2 => json!({"metadata": {"name": "b", "annotations": {"k8s.io/initial-events-end": "true"}}}),
        _ => json!([{"metadata": 3}, "x"]),
    })
}

fn bodies(u: &mut Unstructured<'_>) -> Result<Bodies> {
    let some = |u: &mut Unstructured<'_>| Ok(u.arbitrary::<bool>()?.then(|| "pg-1".to_owned()));
    let mut value = || u.arbitrary::<bool>()?.then(|| object(u)).transpose();
    let (json, outcome, stored) = (value()?, value()?, value()?);
    Ok(Bodies {
        json,
        outcome,
        stored,
        name: some(u)?,
        resource_version: some(u)?,
        uid: some(u)?.map(Uid),
        apply: u.arbitrary()?,
        labels: some(u)?.map(|v| ("app".to_owned(), v)).into_iter().collect(),
        ..Bodies::default()
    })
}

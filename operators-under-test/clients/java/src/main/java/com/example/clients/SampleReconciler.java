package com.example.clients;

import io.fabric8.kubernetes.api.model.Condition;
import io.fabric8.kubernetes.api.model.ConditionBuilder;
import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.fabric8.kubernetes.api.model.OwnerReference;
import io.fabric8.kubernetes.api.model.OwnerReferenceBuilder;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.javaoperatorsdk.operator.api.config.informer.InformerEventSourceConfiguration;
import io.javaoperatorsdk.operator.api.reconciler.Context;
import io.javaoperatorsdk.operator.api.reconciler.ControllerConfiguration;
import io.javaoperatorsdk.operator.api.reconciler.EventSourceContext;
import io.javaoperatorsdk.operator.api.reconciler.Reconciler;
import io.javaoperatorsdk.operator.api.reconciler.UpdateControl;
import io.javaoperatorsdk.operator.processing.event.ResourceID;
import io.javaoperatorsdk.operator.processing.event.source.EventSource;
import io.javaoperatorsdk.operator.processing.event.source.informer.InformerEventSource;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Keeps the ConfigMaps of a Sample. */
@ControllerConfiguration(name = "sample")
public final class SampleReconciler implements Reconciler<Sample> {

  /** A child is known by its name, so that no damage to its labels or owners hides it. */
  private static final Pattern CHILD_NAME = Pattern.compile("(.+)-([0-9]{1,9})");

  @Override
  public List<EventSource<?, Sample>> prepareEventSources(EventSourceContext<Sample> context) {
    var children =
        InformerEventSourceConfiguration.from(ConfigMap.class, Sample.class)
            .withNamespacesInheritedFromController()
            .withSecondaryToPrimaryMapper(SampleReconciler::sampleOf)
            .build();
    return List.of(new InformerEventSource<>(children, context));
  }

  @Override
  public UpdateControl<Sample> reconcile(Sample sample, Context<Sample> context) {
    // Children go with their owner, by garbage collection.
    if (sample.isMarkedForDeletion()) {
      return UpdateControl.noUpdate();
    }
    Map<Integer, ConfigMap> found = new HashMap<>();
    for (ConfigMap child : context.getSecondaryResources(ConfigMap.class)) {
      Matcher name = CHILD_NAME.matcher(child.getMetadata().getName());
      if (name.matches() && name.group(1).equals(sample.getMetadata().getName())) {
        found.put(Integer.parseInt(name.group(2)), child);
      }
    }
    KubernetesClient client = context.getClient();
    for (int number = 0; number < sample.getSpec().count; number++) {
      keep(client, sample, number, found.get(number));
    }
    found.forEach(
        (number, child) -> {
          if (number >= sample.getSpec().count && isControlledBy(child, sample)) {
            // A delete that names a version deletes that version of that object only.
            client
                .resource(child)
                .lockResourceVersion(child.getMetadata().getResourceVersion())
                .delete();
          }
        });
    report(client, sample);
    return UpdateControl.noUpdate();
  }

  private static Set<ResourceID> sampleOf(ConfigMap child) {
    Matcher name = CHILD_NAME.matcher(child.getMetadata().getName());
    return name.matches()
        ? Set.of(new ResourceID(name.group(1), child.getMetadata().getNamespace()))
        : Set.of();
  }

  private static boolean isControlledBy(ConfigMap child, Sample sample) {
    return child.getMetadata().getOwnerReferences().stream()
        .anyMatch(
            owner ->
                Boolean.TRUE.equals(owner.getController())
                    && owner.getUid().equals(sample.getMetadata().getUid()));
  }

  private static OwnerReference ownerReference(Sample sample) {
    return new OwnerReferenceBuilder()
        .withApiVersion(sample.getApiVersion())
        .withKind(sample.getKind())
        .withName(sample.getMetadata().getName())
        .withUid(sample.getMetadata().getUid())
        .withController(true)
        .withBlockOwnerDeletion(true)
        .build();
  }

  private static void keep(KubernetesClient client, Sample sample, int number, ConfigMap child) {
    Map<String, String> wanted = Map.of("text", sample.getSpec().text);
    if (child == null) {
      ConfigMap made =
          new ConfigMapBuilder()
              .withNewMetadata()
              .withNamespace(sample.getMetadata().getNamespace())
              .withName(sample.getMetadata().getName() + "-" + number)
              .withOwnerReferences(ownerReference(sample))
              .endMetadata()
              .withData(wanted)
              .build();
      client.resource(made).create();
      return;
    }
    if (wanted.equals(child.getData()) && isControlledBy(child, sample)) {
      return;
    }
    List<OwnerReference> owners = new ArrayList<>(child.getMetadata().getOwnerReferences());
    owners.removeIf(owner -> owner.getUid().equals(sample.getMetadata().getUid()));
    if (owners.stream().anyMatch(owner -> Boolean.TRUE.equals(owner.getController()))) {
      throw new IllegalStateException(child.getMetadata().getName() + " is controlled by another");
    }
    owners.add(ownerReference(sample));
    ConfigMap changed =
        new ConfigMapBuilder(child)
            .editMetadata()
            .withOwnerReferences(owners)
            .endMetadata()
            .withData(wanted)
            .build();
    client.resource(changed).update();
  }

  private static void report(KubernetesClient client, Sample sample) {
    Long generation = sample.getMetadata().getGeneration();
    Sample.Status old = Objects.requireNonNullElseGet(sample.getStatus(), Sample.Status::new);
    Condition before =
        old.conditions.stream().filter(c -> c.getType().equals("Ready")).findFirst().orElse(null);
    boolean wasReady = before != null && "True".equals(before.getStatus());
    Condition ready =
        new ConditionBuilder()
            .withType("Ready")
            .withStatus("True")
            .withReason("Complete")
            .withMessage("all children are there")
            .withObservedGeneration(generation)
            .withLastTransitionTime(
                wasReady
                    ? before.getLastTransitionTime()
                    : Instant.now().truncatedTo(ChronoUnit.SECONDS).toString())
            .build();
    if (ready.equals(before)
        && generation.equals(old.observedGeneration)
        && old.ready == sample.getSpec().count) {
      return;
    }
    Sample.Status status = new Sample.Status();
    status.observedGeneration = generation;
    status.ready = sample.getSpec().count;
    status.conditions = List.of(ready);
    Sample changed = new Sample();
    changed.setMetadata(sample.getMetadata());
    changed.setSpec(sample.getSpec());
    changed.setStatus(status);
    client.resource(changed).updateStatus();
  }
}

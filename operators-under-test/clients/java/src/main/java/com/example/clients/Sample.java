package com.example.clients;

import io.fabric8.kubernetes.api.model.Condition;
import io.fabric8.kubernetes.api.model.Namespaced;
import io.fabric8.kubernetes.client.CustomResource;
import io.fabric8.kubernetes.model.annotation.Group;
import io.fabric8.kubernetes.model.annotation.Version;
import java.util.ArrayList;
import java.util.List;

/** Asks for ConfigMaps NAME-0 to NAME-(count - 1) with one text. */
@Group("clients.example.com")
@Version("v1")
public class Sample extends CustomResource<Sample.Spec, Sample.Status> implements Namespaced {

  /** What a Sample asks for. */
  public static class Spec {
    public String text = "";
    public int count = 1;
  }

  /** What the operator says about it. */
  public static class Status {
    public Long observedGeneration;
    public int ready;
    public List<Condition> conditions = new ArrayList<>();
  }
}

package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	// As k3s and kind name it.
	localPath = "rancher.io/local-path"
	// Where kube-controller-manager's kubernetes.io/host-path puts volumes, whatever one would like.
	hostPathVolumes = "/tmp/hostpath_pv"
)

// provideVolumes makes both kinds of dynamic volumes work, below k3s's own directory for them.
func (s *k3sServer) provideVolumes(ctx context.Context) {
	hostPath := filepath.Join(s.storage(), "host-path")
	for _, directory := range []string{hostPath, hostPathVolumes} {
		must(os.MkdirAll(directory, 0o755))
	}
	// /tmp may be a tmpfs, and is never a volume.
	if err := unix.Mount(hostPath, hostPathVolumes, "", unix.MS_BIND, ""); err != nil {
		say("volumes of kubernetes.io/host-path stay in %s: %v", hostPathVolumes, err)
	}
	go func() { must(openVolumes(ctx, s.storage(), hostPathVolumes)) }()
	if slices.Contains(s.disabled, "local-storage") {
		return
	}
	provisioner := newProvisioner(s.credentials("client-admin"), s.storage(), s.node)
	provisioner.createClass(ctx, "local-path")
	go provisioner.run(ctx)
}

// runVolumes is the command `volumes`, for a node that kubeadm set up.
func runVolumes(arguments []string) int {
	flags := pflag.NewFlagSet("volumes", pflag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", "", "an administrator's; while it is not there, volumes are only opened to all users")
	root := flags.String("root", "/var/local-path-provisioner", "directory of the volumes")
	must(flags.Parse(arguments))
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer cancel()
	if *kubeconfig != "" {
		go func() {
			// On a control plane it appears when the node is set up, elsewhere never.
			for ctx.Err() == nil {
				if _, err := os.Stat(*kubeconfig); err == nil {
					newProvisioner(*kubeconfig, *root, "").run(ctx)
					return
				}
				time.Sleep(200 * time.Millisecond)
			}
		}()
	}
	must(openVolumes(ctx, *root, hostPathVolumes))
	return 0
}

// openVolumes lets every user write to new volumes: whoever makes the directory, kubelet or the controller manager, makes it
// for root alone, and an operator's pods run as somebody else. A pod's sandbox takes long enough for this to be first.
func openVolumes(ctx context.Context, directories ...string) error {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return err
	}
	defer watcher.Close()
	for _, directory := range directories {
		if err := os.MkdirAll(directory, 0o755); err != nil {
			return err
		}
		if err := watcher.Add(directory); err != nil {
			return err
		}
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case event := <-watcher.Events:
			if event.Has(fsnotify.Create) {
				_ = os.Chmod(event.Name, 0o777)
			}
		case err := <-watcher.Errors:
			say("watch volumes: %v", err)
		}
	}
}

// provisioner makes and removes the volumes of claims whose class has the provisioner rancher.io/local-path.
type provisioner struct {
	client kubernetes.Interface
	root   string
	// The node for claims that do not wait for a pod; empty for none.
	node string
}

func newProvisioner(kubeconfig, root, node string) *provisioner {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	must(err)
	config.UserAgent = "local-path-provisioner"
	return &provisioner{kubernetes.NewForConfigOrDie(config), root, node}
}

// createClass makes the default class, unless an earlier start did.
func (p *provisioner) createClass(ctx context.Context, name string) {
	wait := storagev1.VolumeBindingWaitForFirstConsumer
	_, err := p.client.StorageV1().StorageClasses().Create(ctx, &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"},
		},
		Provisioner:       localPath,
		VolumeBindingMode: &wait,
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		say("storage class %s: %v", name, err)
	}
}

// run looks at all claims and volumes whenever one of them changes: there are few, and nothing can be missed.
func (p *provisioner) run(ctx context.Context) {
	factory := informers.NewSharedInformerFactory(p.client, 0)
	claims, volumes := factory.Core().V1().PersistentVolumeClaims(), factory.Core().V1().PersistentVolumes()
	changed := make(chan struct{}, 1)
	wake := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	for _, informer := range []cache.SharedIndexInformer{claims.Informer(), volumes.Informer()} {
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { wake() },
			UpdateFunc: func(any, any) { wake() },
		})
		must(err)
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
		all, err := claims.Lister().List(labels.Everything())
		must(err)
		for _, claim := range all {
			err = firstOf(err, p.provision(ctx, claim))
		}
		released, err2 := volumes.Lister().List(labels.Everything())
		must(err2)
		for _, volume := range released {
			err = firstOf(err, p.remove(ctx, volume))
		}
		if err != nil {
			say("volumes: %v", err)
			time.AfterFunc(time.Second, wake)
		}
	}
}

func firstOf(errors ...error) error {
	for _, err := range errors {
		if err != nil {
			return err
		}
	}
	return nil
}

// provision makes a claim's volume, once kube-controller-manager asks for it: that is after the scheduler chose a node, where
// the class waits for one.
func (p *provisioner) provision(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	asked := claim.Annotations["volume.kubernetes.io/storage-provisioner"] == localPath
	if !asked || claim.Spec.VolumeName != "" || claim.DeletionTimestamp != nil || claim.Spec.StorageClassName == nil {
		return nil
	}
	node := claim.Annotations["volume.kubernetes.io/selected-node"]
	if node == "" {
		node = p.node
	}
	class, err := p.client.StorageV1().StorageClasses().Get(ctx, *claim.Spec.StorageClassName, metav1.GetOptions{})
	if err != nil || node == "" {
		return err
	}
	name := "pvc-" + string(claim.UID)
	path := filepath.Join(p.root, fmt.Sprintf("%s_%s_%s", name, claim.Namespace, claim.Name))
	if node == p.node {
		if err := firstOf(os.MkdirAll(path, 0o777), os.Chmod(path, 0o777)); err != nil {
			return err
		}
	}
	kind := corev1.HostPathDirectoryOrCreate
	reference := &corev1.ObjectReference{
		Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: claim.Namespace, Name: claim.Name,
		UID: claim.UID, ResourceVersion: claim.ResourceVersion,
	}
	_, err = p.client.CoreV1().PersistentVolumes().Create(ctx, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Annotations: map[string]string{"pv.kubernetes.io/provisioned-by": localPath},
		},
		Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: *class.ReclaimPolicy,
			StorageClassName:              class.Name,
			AccessModes:                   claim.Spec.AccessModes,
			VolumeMode:                    claim.Spec.VolumeMode,
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage]},
			ClaimRef:                      reference,
			PersistentVolumeSource:        corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path, Type: &kind}},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{
					Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node},
				}},
			}}}},
		},
	}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// remove deletes a volume that lost its claim, and its data where they are on this node.
func (p *provisioner) remove(ctx context.Context, volume *corev1.PersistentVolume) error {
	ours := volume.Annotations["pv.kubernetes.io/provisioned-by"] == localPath && volume.Spec.HostPath != nil
	if !ours || volume.Status.Phase != corev1.VolumeReleased || volume.DeletionTimestamp != nil ||
		volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete {
		return nil
	}
	if path := volume.Spec.HostPath.Path; filepath.Dir(path) == p.root {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	err := p.client.CoreV1().PersistentVolumes().Delete(ctx, volume.Name, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

package CdcBridge::Kafka;

# A private Kafka broker: one node in KRaft mode, loopback, free ports, temporary folder. And what kcat reads there.
#
#   my $kafka = CdcBridge::Kafka->new(properties => ["num.partitions=3"]);    # skips the test, loudly, when there is no broker to be had
#   my @messages = $kafka->messages('shop.t');      # committed ones, parsed: partition, offset, key, value (undef: a tombstone), headers
#   $kafka->kill9; $kafka->start;

use strict;
use warnings;

use CdcBridge::Env qw(free_port new_folder poll_until reap run_program servers_dir slurp spawn with_template);
use JSON::PP ();
use Test::Builder;

my @all;

# properties => [further ones], listeners => [further ones: "SASL_PLAINTEXT"], outlive => the broker survives this script
sub new
{
	my ($class, %option) = @_;
	my $home = servers_dir() . '/kafka';
	my $missing = !-e "$home/.complete" ? 'the broker (test/tools/get-kafka)' : !_has('java') ? 'java' : !_has('kcat') ? 'kcat' : undef;
	Test::Builder->new->skip_all("there is no Kafka here: $missing is missing") if $missing;
	my $self = bless {
		home => $home,
		properties => $option{properties} // [],
		listeners => $option{listeners} // [],
		heap => $option{heap} // '384m',
		jvm => $option{jvm} // [],
		format => $option{format} // [],
		outlive => $option{outlive},
		owner => $$,
		dir => $option{dir} // new_folder('kafka', keep => $option{outlive}),
		controller => free_port(),
		port => { PLAINTEXT => free_port(), map { $_ => free_port() } @{ $option{listeners} // [] } },
		at => {},
	}, $class;
	push @all, $self;
	$self->_write_properties;
	run_program("$self->{dir}/init.log", $self->java('kafka.tools.StorageTool', 'format', '-t', 'Y2RjX2JyaWRnZV90ZXN0cw', '-c', "$self->{dir}/server.properties", @{ $self->{format} }));
	return $self->start;
}

sub _has { my ($program) = @_; return scalar(grep { -x "$_/$program" } split(/:/, $ENV{PATH})); }
sub port { my ($self, $listener) = @_; return $self->{port}{ $listener // 'PLAINTEXT' }; }
sub address { my ($self, $listener) = @_; return '127.0.0.1:' . $self->port($listener); }
sub pid { return $_[0]{pid}; }
sub log_text { return slurp("$_[0]{dir}/broker.log"); }
sub version { my ($self) = @_; return $self->log_text =~ /Kafka version: (\S+)/ ? $1 : 'unknown'; }

# A program of Kafka's.
sub java
{
	my ($self, @arguments) = @_;
	return ('java', "-Xmx$self->{heap}", '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', @{ $self->{jvm} }, '-cp', "$self->{home}/libs/*", @arguments);
}

sub _write_properties
{
	my ($self) = @_;
	my $port = $self->{port};
	my @names = sort keys %$port;
	open(my $out, '>', "$self->{dir}/server.properties") or die "server.properties: $!\n";
	print $out map { "$_\n" } 'process.roles=broker,controller', 'node.id=1', "controller.quorum.voters=1\@127.0.0.1:$self->{controller}",
	  'listeners=' . join(',', "CONTROLLER://127.0.0.1:$self->{controller}", map { "$_://127.0.0.1:$port->{$_}" } @names),
	  'advertised.listeners=' . join(',', map { "$_://127.0.0.1:$port->{$_}" } @names), 'controller.listener.names=CONTROLLER',
	  'listener.security.protocol.map=' . join(',', 'CONTROLLER:PLAINTEXT', map { "$_:$_" } @names), 'inter.broker.listener.name=PLAINTEXT',
	  "log.dirs=$self->{dir}/data", (map { "$_=1" } 'offsets.topic.replication.factor', 'offsets.topic.num.partitions', 'transaction.state.log.replication.factor',
		'transaction.state.log.min.isr', 'transaction.state.log.num.partitions', 'share.coordinator.state.topic.replication.factor', 'share.coordinator.state.topic.min.isr'),
	  'group.initial.rebalance.delay.ms=0', 'auto.create.topics.enable=false', 'transaction.abort.timed.out.transaction.cleanup.interval.ms=500',
	  'log.cleaner.dedupe.buffer.size=2097152', @{ $self->{properties} };
	close($out);
}

sub start
{
	my ($self) = @_;
	$self->{pid} = spawn("$self->{dir}/broker.log", $self->{outlive}, $self->java('kafka.Kafka', "$self->{dir}/server.properties"));
	my $up = poll_until(sub {
		die "the broker ended while starting:\n" . $self->log_text if reap($self->{pid}, 0);
		return $self->kcat('-L', '-J', '-m', 2) =~ /"brokers":\[\{/;
	});
	die "the broker did not start:\n" . $self->log_text unless $up;
	Test::Builder->new->note('Kafka ' . $self->version . ' at port ' . $self->port);
	return $self;
}

sub stop { return $_[0]->_end('TERM'); }
sub kill9 { return $_[0]->_end('KILL'); }
sub hold { kill('STOP', $_[0]{pid}); return $_[0]; }
sub let_go { kill('CONT', $_[0]{pid}); return $_[0]; }

sub _end
{
	my ($self, $signal) = @_;
	my $pid = delete $self->{pid} or return $self;
	kill('CONT', $pid);
	kill($signal, $pid);
	reap($pid) or do { kill('KILL', $pid); reap($pid); };
	return $self;
}

# What kcat prints.
sub kcat
{
	my ($self, @arguments) = @_;
	open(my $pipe, '-|', 'sh', '-c', 'exec "$@" 2>/dev/null', 'sh', 'kcat', '-b', $self->address, '-X', 'fetch.wait.max.ms=5', @arguments) or die "kcat: $!\n";
	local $/;
	my $text = <$pipe> // '';
	close($pipe);
	return $text;
}

# topic => number of partitions
sub topics
{
	my ($self) = @_;
	my $all = JSON::PP->new->utf8->decode($self->kcat('-L', '-J') || '{"topics":[]}');
	return map { $_->{topic} => scalar(@{ $_->{partitions} }) } grep { $_->{topic} !~ /^__/ } @{ $all->{topics} };
}

# Where each partition of the topics ends, for who reads committed messages alone, or all.
sub _ends
{
	my ($self, $level, %topics) = @_;
	return {} unless %topics;
	my @asked = map { my $topic = $_; map { ('-t', "$topic:$_:-1") } 0 .. $topics{$topic} - 1 } sort keys %topics;
	open(my $pipe, '-|', 'sh', '-c', 'exec "$@" 2>/dev/null', 'sh', 'kcat', '-b', $self->address, '-Q', '-X', "isolation.level=$level", @asked) or die "kcat: $!\n";
	my %end = map { /^(\S+) \[(\d+)\] offset (-?\d+)/ ? ("$1 $2" => $3) : () } <$pipe>;
	close($pipe);
	return \%end;
}

# Wait until nothing of a transaction is open in the topics: a commit is certain some moments before readers see it.
sub wait_settled
{
	my ($self, %topics) = @_;
	my $json = JSON::PP->new->canonical;
	poll_until(sub { return $json->encode($self->_ends('read_uncommitted', %topics)) eq $json->encode($self->_ends('read_committed', %topics)); })
	  or die "transactions stay open in topics\n";
	return $self;
}

# Committed messages of a topic that came since the last call, in the order of each partition. With raw their values are bytes, not JSON.
sub new_messages
{
	my ($self, $topic, %option) = @_;
	my %topics = $self->topics;
	my $partitions = $topics{$topic} or return;
	$self->wait_settled($topic => $partitions);
	my (@messages, $json);
	for my $partition (0 .. $partitions - 1)
	{
		my $at = \$self->{at}{"$topic $partition"};
		my $text = $self->kcat('-C', '-q', '-e', '-t', $topic, '-p', $partition, '-o', $$at // 'beginning', '-X', 'isolation.level=read_committed',
			'-f', '%o %K %S %h\n%k%s\n');
		while ($text =~ /\G(\d+) (-?\d+) (-?\d+) (.*)\n/gc)
		{
			my ($offset, $key_len, $len, $headers) = ($1, $2, $3, $4);
			die "offsets of $topic $partition step back\n" if defined $$at && $offset < $$at;
			$$at = $offset + 1;
			my $key = $key_len < 0 ? undef : substr($text, pos($text), $key_len);
			my $payload = $len < 0 ? undef : substr($text, pos($text) + length($key // ''), $len);
			pos($text) += length($key // '') + length($payload // '') + 1;
			push @messages, { partition => $partition, offset => $offset, key => $key, text => $payload,
				headers => { map { split(/=/, $_, 2) } split(/,(?=(?:cdc|__debezium)\.)/, $headers) },
				value => defined $payload && !$option{raw} ? JSON::PP->new->utf8->decode($payload) : undef };
		}
	}
	return @messages;
}

# All of them.
sub messages
{
	my ($self, $topic) = @_;
	push @{ $self->{messages}{$topic} }, $self->new_messages($topic);
	return @{ $self->{messages}{$topic} };
}

END
{
	my $status = $?;
	for my $self (@all) { $self->kill9 if $self->{owner} == $$ && !$self->{outlive}; }
	$? = $status;
}

1;

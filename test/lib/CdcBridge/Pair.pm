package CdcBridge::Pair;

# Two servers of one family, of which the second replicates from the first by GTIDs, and a pipeline that knows both.
#
#   my $pair = CdcBridge::Pair->new(logs => 1);       # logs => 0: the replica does not log what it replicates
#   $pair->first->sql('create database shop', ...);
#   my $pipeline = $pair->pipeline(postgres => $postgres)->setup->start;
#   $pair->fail_over($pipeline);                      # kill -9 of the one that is followed, when the other has all of it

use strict;
use warnings;

use CdcBridge::Env qw(poll_until);
use CdcBridge::Pipeline;
use CdcBridge::Source;

my $number = 70;

# args => [further options of both]
sub new
{
	my ($class, %option) = @_;
	my $logs = $option{logs} // 1;
	my @servers = map {
		CdcBridge::Source->new(args => [ @{ $option{args} // [] }, '--server-id=' . ++$number, _logging($_ == 0 || $logs) ])
	} 0, 1;
	# whether a replica applies what it is sent may be asked with a privilege only
	$_->is_mariadb and $_->sql(q{grant slave monitor on *.* to 'repl'@'%'}) for @servers;
	# what made their users is no part of the history that they share
	$_->forget_log for @servers;
	my $self = bless { servers => \@servers }, $class;
	$servers[1]->replicate_from($servers[0]) unless $option{apart};
	return $self;
}

sub _logging
{
	my ($on) = @_;
	my $name = ($ENV{CDC_SOURCE} // 'mariadb') eq 'mysql' ? 'log-replica-updates' : 'log-slave-updates';
	return "--$name=" . ($on ? 'ON' : 'OFF');
}

sub first { return $_[0]{servers}[0]; }
sub second { return $_[0]{servers}[1]; }

sub identity
{
	my ($source) = @_;
	return $source->is_mysql ? $source->query_value('select @@server_uuid')
	  : 'mariadb:' . $source->query_value('select @@server_id') . ':' . $source->query_value('select @@gtid_domain_id');
}

# A pipeline whose SERVER has both in its list.
sub pipeline
{
	my ($self, %option) = @_;
	my $server = delete $option{server_options} // {};
	return CdcBridge::Pipeline->new(source => $self->first, %option,
		server_options => {
			host => join(',', map { $_->host } @{ $self->{servers} }),
			port => join(',', map { $_->port } @{ $self->{servers} }),
			failover_delay => 0, %$server });
}

# Wait until the pipeline's position is one of SOURCE's log.
sub wait_for_server
{
	my ($self, $pipeline, $source) = @_;
	my $identity = identity($source);
	my $at = sub {
		my ($status, $out) = $pipeline->postgres->try_psql(
			"select identity from cdc_bridge.position where pipeline = '" . $pipeline->name . "' and file is not null");
		return $status == 0 && $out eq $identity;
	};
	die "pipeline does not follow $identity\n" . $pipeline->describe unless poll_until($at);
	$pipeline->{source} = $source;
	return $self;
}

# The first server dies when the second has all of it, or is stopped in order; the second is promoted, and becomes the first.
sub fail_over
{
	my ($self, %option) = @_;
	my ($old, $new) = @{ $self->{servers} };
	$old->sql('flush tables with read lock');
	$new->wait_for_replica($old);
	$option{in_order} ? $old->stop : $old->kill9;
	$new->promote;
	$self->{servers} = [ $new, $old ];
	return $self;
}

1;
